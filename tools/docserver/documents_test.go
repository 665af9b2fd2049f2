//go:build linux || darwin

package docserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/tools/strictjson"
)

// CHECKS 2, 3, 4, 6, 8: the main line over one connection, ending clean.
func TestServe_SearchReadSaveStatus(t *testing.T) {
	d := newDesk(t)
	text := "# Notes\n证据 of <things> & more\n"
	d.source("notes.md", text)
	c := d.start()
	var found searchData
	a := expect(t, c, ToolSearch, `{"query":"证据","max_results":2}`, StatusOK)
	must(t, json.Unmarshal(a.Data, &found))
	if len(found.Hits) != 1 || found.Hits[0] != (searchHit{"notes.md", text}) || found.Examined != 1 || found.Skipped != 0 || found.Truncated {
		t.Errorf("search: %s", a.Data)
	}
	want, err := strictjson.Encode(readData{"notes.md", text})
	must(t, err)
	expect(t, c, ToolRead, `{"filename":"notes.md"}`, StatusOK, string(want))
	report := "Bericht über 证据 😀\n"
	expect(t, c, ToolSave, saving("report.md", report, d.grant("report.md", report)), StatusOK,
		fmt.Sprintf(`{"bytes":%d,"filename":"report.md"}`, len(report)))
	sum := sha256.Sum256([]byte(report))
	expect(t, c, ToolStatus, `{"filename":"report.md"}`, StatusOK,
		fmt.Sprintf(`{"bytes":%d,"exists":true,"sha256":"%s"}`, len(report), hex.EncodeToString(sum[:])))
	expect(t, c, ToolStatus, `{"filename":"other.md"}`, StatusOK, `{"exists":false}`)
	saved, err := os.ReadFile(d.path("reports", "report.md"))
	must(t, err)
	if string(saved) != report {
		t.Errorf("saved %q", saved)
	}
	if code := c.End(); code != 0 {
		t.Errorf("exit %d", code)
	}
	for line := range strings.Lines(c.Stderr()) {
		if !json.Valid([]byte(line)) || strings.Contains(line, report) || strings.Contains(line, "notes.md") {
			t.Errorf("stderr: %s", line)
		}
	}
}

// CHECKS 10, 11, 17, CASES X4: by rule.
func TestServe_RefusesNames(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"a.md", "A.md", "9.md", strings.Repeat("n", 64) + ".md"} {
		d.source(name, "text")
	}
	c := d.start()
	for name, want := range map[string]string{
		"a.md": StatusOK, "A.md": StatusOK, "9.md": StatusOK, strings.Repeat("n", 64) + ".md": StatusOK,
		strings.Repeat("n", 65) + ".md": StatusRejected,
		"/etc/a.md":                     StatusRejected, "../a.md": StatusRejected, "-a.md": StatusRejected, "_a.md": StatusRejected,
		".md": StatusRejected, "a.MD": StatusRejected, "a.b.md": StatusRejected, "a b.md": StatusRejected, "a.md\n": StatusRejected,
		"a\x00.md": StatusRejected, "ａ.md": StatusRejected, "": StatusRejected,
	} {
		arguments, err := strictjson.Encode(map[string]string{"filename": name})
		must(t, err)
		expect(t, c, ToolRead, string(arguments), want)
		if want == StatusRejected {
			expect(t, c, ToolStatus, string(arguments), want)
			expect(t, c, ToolSave, saving(name, "x", d.grant(name, "x")), want)
			expect(t, c, ToolSettle, settling(name, d.grant(name, "x")), want)
		}
	}
	if got := d.reports() + names(t, d.config.Ledger); got != "" {
		t.Errorf("written: %s", got)
	}
}

// CHECKS 12, 13, 14, 18, 19, CASES X3: every entry that may not be read fails in one sentence, at once, and is
// skipped by a search.
func TestServe_ReadsOrdinaryFilesOnly(t *testing.T) {
	d := newDesk(t)
	must(t, os.WriteFile(d.path("outside.md"), []byte("secret"), 0o644))
	must(t, os.Symlink("../outside.md", d.path("sources", "l.md")))
	must(t, os.WriteFile(d.path("sources", "t.md"), []byte("x"), 0o644))
	must(t, os.Link(d.path("sources", "t.md"), d.path("sources", "hard.md")))
	must(t, syscall.Mkfifo(d.path("sources", "fifo.md"), 0o644))
	must(t, os.Mkdir(d.path("sources", "folder.md"), 0o755))
	t.Chdir(d.path("sources"))
	socket, err := net.Listen("unix", "socket.md")
	must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	d.source("big.md", strings.Repeat("x", 24_001))
	d.source("latin.md", "caf\xe9")
	refused := []string{"l.md", "t.md", "hard.md", "fifo.md", "folder.md", "socket.md", "big.md", "latin.md"}
	for name, content := range map[string]string{
		"full.md": strings.Repeat("x", 24_000), "empty.md": "", "bom.md": "\ufeffa", "crlf.md": "a\r\nb", "nul.md": "a\x00b",
	} {
		d.source(name, content)
	}
	c := d.start()
	for _, name := range append(refused, "missing.md") {
		begun := time.Now()
		a := expect(t, c, ToolRead, `{"filename":"`+name+`"}`, StatusFailed)
		if a.Message != failedRead.Message || time.Since(begun) > time.Second {
			t.Errorf("%s: %v after %v", name, a, time.Since(begun))
		}
	}
	for _, name := range []string{"full.md", "empty.md", "bom.md", "crlf.md", "nul.md"} {
		content, err := os.ReadFile(d.path("sources", name))
		must(t, err)
		want, err := strictjson.Encode(readData{name, string(content)})
		must(t, err)
		expect(t, c, ToolRead, `{"filename":"`+name+`"}`, StatusOK, string(want))
	}
	a := expect(t, c, ToolSearch, `{"query":"no such text"}`, StatusOK)
	if want := fmt.Sprintf(`{"examined":13,"hits":[],"skipped":%d,"truncated":false}`, len(refused)); string(a.Data) != want {
		t.Errorf("search: %s, want %s", a.Data, want)
	}
}

// CHECKS 18, 83: nothing leaks in the child, whatever it reads.
func TestServe_DescriptorsStayTheSame(t *testing.T) {
	d := newDesk(t)
	d.source("good.md", "x")
	must(t, os.Symlink("good.md", d.path("sources", "l.md")))
	must(t, syscall.Mkfifo(d.path("sources", "fifo.md"), 0o644))
	must(t, os.Mkdir(d.path("sources", "folder.md"), 0o755))
	c := d.start()
	refused := d.grant("a.md", "y")
	round := func() {
		for _, name := range []string{"good.md", "l.md", "fifo.md", "folder.md"} {
			c.Call(ToolRead, `{"filename":"`+name+`"}`)
		}
		c.Call(ToolSearch, `{"query":"x","max_results":1}`)
		c.Call(ToolSave, saving("a.md", "x", refused))
	}
	round()
	before := names(t, fmt.Sprintf("/proc/%d/fd", c.PID()))
	for range 1000 {
		round()
	}
	if after := names(t, fmt.Sprintf("/proc/%d/fd", c.PID())); after != before {
		t.Errorf("descriptors %s, before %s", after, before)
	}
}

// CHECKS 21, 22, SPEC D9: the arguments are checked here, whatever a host did.
func TestServe_ChecksItsArguments(t *testing.T) {
	d := newDesk(t)
	d.source("a.md", "x")
	c := d.start()
	text := func(s string) string { return `{"query":"` + s + `"}` }
	for arguments, want := range map[string]string{
		`{"query":"x","max_results":0}`: StatusRejected, `{"query":"x","max_results":4}`: StatusRejected,
		`{"query":"x","max_results":true}`: StatusRejected, `{"query":"x","max_results":"2"}`: StatusRejected,
		`{"query":"x","max_results":2.0}`: StatusRejected, `{"query":"x","max_results":null}`: StatusRejected,
		`{"query":"x","max_results":2e0}`: StatusRejected, `{"query":"x","max_results":-1}`: StatusRejected,
		`{"query":"x","max_results":1}`: StatusOK, `{"query":"x","max_results":3}`: StatusOK, `{"query":"x"}`: StatusOK,
		text(""): StatusRejected, text(strings.Repeat("a", 80)): StatusOK, text(strings.Repeat("a", 81)): StatusRejected,
		text(strings.Repeat("证", 80)): StatusOK, text(strings.Repeat("证", 81)): StatusRejected,
		text(strings.Repeat("😀", 80)): StatusOK, text(strings.Repeat(`\ud83d\ude00`, 80)): StatusOK, text(strings.Repeat("😀", 81)): StatusRejected,
		text(`\ud800`): StatusRejected, text(`a\udc00b`): StatusRejected,
		`{"query":"x","extra":1}`: StatusRejected, `{"Query":"x"}`: StatusRejected, `{"query":"x","QUERY":"y"}`: StatusRejected,
		`{"query":"x","query":"x"}`: StatusRejected, `{"query":"x","q\u0075ery":"x"}`: StatusRejected,
		`{"query":null}`: StatusRejected, `{"query":5}`: StatusRejected, `{"query":["x"]}`: StatusRejected,
		`{"max_results":1}`: StatusRejected, `{}`: StatusRejected, `null`: StatusRejected, `[]`: StatusRejected, `"x"`: StatusRejected, `5`: StatusRejected,
		`{"query":"x","max_results":1e999999}`:                                  StatusRejected,
		`{"query":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: StatusRejected,
		`{"query":"x","max_results":` + strings.Repeat("1", 33) + `}`:           StatusRejected,
		`{"query":"x","grant":"x"}`:                                             StatusRejected,
	} {
		a := expect(t, c, ToolSearch, arguments, want)
		if want == StatusRejected && a.Message != refusedArguments.Message {
			t.Errorf("%s: %v", arguments, a)
		}
	}
	if got := c.Result("tools/call", json.RawMessage(`{"name":"search_documents"}`)); !strings.Contains(string(got), `"rejected"`) {
		t.Errorf("no arguments at all: %s", got)
	}
	expect(t, c, ToolSearch, `{"query":"x"}`, StatusOK)
}

// CHECKS 28, 31, 32, 33, 35: what a search says on the wire; the edges are in package workspace.
func TestServe_SearchSaysWhatItExamined(t *testing.T) {
	d := newDesk(t)
	for i := range 65 {
		d.source(fmt.Sprintf("f%02d.md", i), "needle")
	}
	c := d.start()
	for arguments, want := range map[string]struct{ data, message string }{
		`{"query":"absent"}`: {`{"examined":64,"hits":[],"skipped":0,"truncated":true}`,
			"No literal match in the files examined. More files exist than a search examines."},
		`{"query":"Needle"}`: {`{"examined":64,"hits":[],"skipped":0,"truncated":true}`,
			"No literal match in the files examined. More files exist than a search examines."},
	} {
		if a := expect(t, c, ToolSearch, arguments, StatusOK, want.data); a.Message != want.message {
			t.Errorf("%s: %q", arguments, a.Message)
		}
	}
	a := expect(t, c, ToolSearch, `{"query":"needle","max_results":1}`, StatusOK)
	if want := "1 file has a literal match. The search ended at the wanted number of results. More files exist than a search examines."; a.Message != want {
		t.Errorf("%q", a.Message)
	}
	must(t, os.RemoveAll(d.path("sources", "f00.md")))
	expect(t, c, ToolSearch, `{"query":"absent"}`, StatusOK, `{"examined":64,"hits":[],"skipped":0,"truncated":false}`)
}

// CHECKS 34: one after another, many at once, after an early stop.
func TestServe_SearchesAtTheSameTime(t *testing.T) {
	d := newDesk(t)
	for i := range 30 {
		d.source(fmt.Sprintf("f%02d.md", i), "needle")
	}
	c := d.start()
	first := c.Call(ToolSearch, `{"query":"needle"}`)
	c.Call(ToolSearch, `{"query":"needle","max_results":1}`)
	const many = 40
	var sent sync.WaitGroup
	sent.Go(func() {
		for range many {
			c.Request("tools/call", json.RawMessage(`{"name":"search_documents","arguments":{"query":"needle"}}`))
		}
	})
	for range many {
		m, ok := c.Next()
		if !ok || !strings.Contains(string(m.Result), string(first.Structured)) {
			t.Fatalf("%s, want %s", m.Result, first.Structured)
		}
	}
	sent.Wait()
}

// CHECKS 74 (server part): the largest answer.
func TestServe_ReadsMarkupOfFullSize(t *testing.T) {
	d := newDesk(t)
	content := strings.Repeat(`"`, 24_000)
	d.source("q.md", content)
	want, err := strictjson.Encode(readData{"q.md", content})
	must(t, err)
	c := d.start()
	expect(t, c, ToolRead, `{"filename":"q.md"}`, StatusOK, string(want))
}

// SPEC D7: the mirror repeats the body as text.
func TestServe_MirrorsTheBodyWhenAsked(t *testing.T) {
	d := newDesk(t)
	d.config.MirrorText = true
	d.source("a.md", "text")
	got := d.start().Call(ToolRead, `{"filename":"a.md"}`)
	canonical, err := strictjson.Canonical(got.Structured)
	must(t, err)
	if len(got.Content) != 1 || got.Content[0].Text != string(canonical) {
		t.Errorf("%+v", got)
	}
}

// A broken handler answers for its own call only.
func TestServe_AnswersWhenAHandlerPanics(t *testing.T) {
	for tool, want := range map[string]result{
		ToolSearch: failedSearch, ToolRead: failedRead, ToolStatus: failedReport, ToolSave: unknownSave, ToolSettle: failedSettle,
	} {
		c := newDesk(t).start(panicEnv + "=" + tool)
		if a := expect(t, c, tool, `{}`, want.Status); a.Message != want.Message {
			t.Errorf("%s: %v", tool, a)
		}
		other := ToolRead
		if tool == ToolRead {
			other = ToolStatus
		}
		expect(t, c, other, `{}`, StatusRejected)
		if code := c.End(); code != 0 || !strings.Contains(c.Stderr(), errHandler.Error()) {
			t.Errorf("%s: exit %d, stderr %s", tool, code, c.Stderr())
		}
	}
}
