package scriptserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/tools/scriptserver"
	"sallyport/tools/stdio/stdiotest"
)

// gone reports whether a process ends within that time; a zombie has ended.
func gone(pid int, within time.Duration) bool {
	for deadline := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil || zombie(pid) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// zombie reports whether a process has ended and was not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// start starts a script and speaks to it.
func start(t *testing.T, yaml, folder string) *stdiotest.Client {
	t.Helper()
	return stdiotest.Start(t, play(t, yaml, folder), stdiotest.Older)
}

func names(t *testing.T, c *stdiotest.Client) string {
	t.Helper()
	var all []string
	for _, raw := range c.Tools() {
		var tool struct{ Name string }
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

func texts(r stdiotest.CallResult) string {
	var all []string
	for _, c := range r.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "|")
}

func TestServer_IsHonestWhenToldNothing(t *testing.T) {
	t.Parallel()
	for _, version := range []string{stdiotest.Current, stdiotest.Older} {
		c := stdiotest.Start(t, play(t, `{tools: [{name: find}, {name: save, result: status}, {name: count, output_schema: {type: object}}]}`, ""), version)
		if version == stdiotest.Current {
			if got := string(c.Result("server/discover", nil)); !strings.Contains(got, `"supportedVersions":["2026-07-28","2025-11-25"]`) {
				t.Errorf("server/discover: %s", got)
			}
		}
		if got := string(c.Tools()[0]); got != `{"name":"find","inputSchema":{"type":"object"}}` {
			t.Errorf("%s: %s", version, got)
		}
		if got := texts(c.Call("find", `{}`)); got != "Done." {
			t.Errorf("%s: a call is answered %q", version, got)
		}
		if got := string(c.Call("save", `{}`).Structured); got != `{"status":"ok","message":"Done.","data":{}}` {
			t.Errorf("%s: a call is answered %s", version, got)
		}
		if got := string(c.Call("count", `{}`).Structured); got != `{}` {
			t.Errorf("%s: a call is answered %s", version, got)
		}
		if m := c.Reply("tools/call", map[string]any{"name": "other"}); m.Error == nil || m.Error.Code != -32602 || !strings.Contains(m.Error.Message, "Unknown tool") {
			t.Errorf("%s: an unknown tool: %+v", version, m)
		}
		if m := c.Reply("resources/list", nil); m.Error == nil || m.Error.Code != -32601 {
			t.Errorf("%s: an unknown method: %+v", version, m)
		}
		if m := c.Reply("tools/list", map[string]any{"cursor": "mine"}); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s: a cursor that was not given: %+v", version, m)
		}
		c.Result("ping", nil)
		if code := c.End(); code != 0 {
			t.Errorf("%s: exit code %d", version, code)
		}
	}
}

func TestServer_NegotiatesAnyVersion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ protocols, asked, discovered, begun string }{
		{"", "2026-07-28", `"supportedVersions":["2026-07-28","2025-11-25"]`, `"protocolVersion":"2025-11-25"`},
		{"", "2099-01-01", `"code":-32022`, `"protocolVersion":"2025-11-25"`},
		{`["2025-11-25"]`, "2026-07-28", `"code":-32601`, `"protocolVersion":"2025-11-25"`},
		{`["1999-01-01"]`, "2025-11-25", `"code":-32601`, `"protocolVersion":"1999-01-01"`},
		{`["2099-01-01"]`, "2026-07-28", `"requested":"2026-07-28"`, `"protocolVersion":"2099-01-01"`},
		{`["2025-06-18", "2025-11-25"]`, "2025-06-18", `"code":-32601`, `"protocolVersion":"2025-06-18"`},
	} {
		yaml := "name: x\n"
		if tc.protocols != "" {
			yaml = "protocols: " + tc.protocols + "\n"
		}
		out := pipe(t, yaml, "",
			`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+tc.asked+`"}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"`+tc.asked+`"}}`)
		if len(out) != 2 || !strings.Contains(out[0], tc.discovered) || !strings.Contains(out[1], tc.begun) {
			t.Errorf("%s, asked for %s: %q", tc.protocols, tc.asked, out)
		}
	}
}

// A result says that it is complete where the protocol of its request has that.
func TestServer_AnswersInTheVersionOfTheRequest(t *testing.T) {
	t.Parallel()
	for version, whole := range map[string]bool{"2026-07-28": true, "2025-11-25": false, "2099-01-01": false} {
		out := pipe(t, "", "", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+version+`"}}}`)
		if got := strings.Contains(out[0], `"resultType":"complete"`); got != whole {
			t.Errorf("%s: %s", version, out[0])
		}
	}
}

func TestReplies_ComeInOrderAndTheLastForEver(t *testing.T) {
	t.Parallel()
	c := start(t, `
tools:
  - name: find
    replies:
      - {text: first}
      - {text: twice, times: 2}
      - {arguments: {query: x, n: 1}, text: for x, times: 9}
      - {text: last}
`, "")
	var got []string
	for _, arguments := range []string{`{}`, `{}`, `{"n":1,"query":"x","more":0}`, `{"query":"x","n":1}`, `{"query":"x","n":"1"}`, `{}`, `{}`} {
		got = append(got, texts(c.Call("find", arguments)))
	}
	if want := []string{"first", "twice", "twice", "for x", "last", "last", "last"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReplies_OfEveryKind(t *testing.T) {
	t.Parallel()
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"find","arguments":{"a":"<x>","n":[1, 2]}}}`
	for reply, want := range map[string]string{
		`{text: hi}`:                                                       `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hi"}]}}`,
		`{text: hi, is_error: true}`:                                       `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hi"}],"isError":true}}`,
		`{structured: {n: 1}}`:                                             `{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"n":1}}}`,
		`{structured: '{"n":1,"n":2}', text: a}`:                           `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1,"n":2}}}`,
		`{status: failed, message: no}`:                                    `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"no"}],"structuredContent":{"status":"failed","message":"no","data":{}}}}`,
		`{status: ok, data: {$text: {argument: a}}}`:                       `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Done."}],"structuredContent":{"status":"ok","message":"Done.","data":"<x>"}}}`,
		`{result: {resultType: task}}`:                                     `{"jsonrpc":"2.0","id":7,"result":{"resultType":"task"}}`,
		`{result: 'null'}`:                                                 `{"jsonrpc":"2.0","id":7,"result":null}`,
		`{result: [{$raw: {argument: n}}]}`:                                `{"jsonrpc":"2.0","id":7,"result":[[1,2]]}`,
		`{error: {code: -32000, message: no, data: [1]}}`:                  `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":[1]}}`,
		`{frames: [{line: 'a $ID'}, {raw: b, times: 3}, {line: c}]}`:       "a 7\nbbbc",
		`{before: [{line: x}], text: a, after: [{raw: "y\n"}], copies: 2}`: "x\n" + strings.Repeat(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}]}}`+"\n", 2) + "y",
		`{before: [{raw: {hex: "ef bb bf"}}], silent: true}`:               "\ufeff",
		`{text: {sha256: {argument: a}}}`:                                  `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + sum("<x>") + `"}]}}`,
	} {
		got := strings.Join(pipe(t, "tools: [{name: find, replies: ["+reply+"]}]", "", call), "\n")
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", reply, got, want)
		}
	}
}

// CHECKS 71, CASES A1: what was done before a crash is done, and what is done after one is not.
func TestWrites_AreRealBeforeTheEnd(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "folder")
	const yaml = `
tools:
  - name: save
    replies:
      - {writes: [{file: {argument: filename}, content: {argument: content}}], silent: true}
      - {writes: [{file: sub/b.md, content: b}, {file: sub/b.md, content: c, append: true}], exit: 3}
      - {when: {exists: sub/b.md}, status: ok, data: {now: {$text: {file: sub/b.md}}, sha256: {$text: {sha256: {file: {argument: filename}}}}}}
      - {exit: 4}
      - {writes: [{file: a.md, remove: true}], text: removed}
`
	c := start(t, yaml, folder)
	arguments := map[string]any{"name": "save", "arguments": map[string]string{"filename": "a.md", "content": "kept"}}
	c.Request("tools/call", arguments) // never answered
	c.Request("tools/call", arguments)
	if code := c.Wait(); code != 3 {
		t.Fatalf("exit code %d", code)
	}
	for file, want := range map[string]string{"a.md": "kept", "sub/b.md": "bc"} {
		if got, err := os.ReadFile(filepath.Join(folder, scriptserver.FilesDir, file)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", file, got, err)
		}
	}
	c = start(t, yaml, folder) // goes on where the first one ended
	want := `{"status":"ok","message":"Done.","data":{"now":"bc","sha256":"` + sum("kept") + `"}}`
	if got := string(c.Call("save", `{"filename":"a.md"}`).Structured); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Request("tools/call", arguments)
	if code := c.Wait(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	c = start(t, yaml, folder)
	if got := texts(c.Call("save", `{}`)); got != "removed" {
		t.Errorf("the third start answers %q", got)
	}
	if _, err := os.Stat(filepath.Join(folder, scriptserver.FilesDir, "a.md")); !os.IsNotExist(err) {
		t.Errorf("a.md is there: %v", err)
	}
}

func TestWrites_StayBelowTheFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := start(t, `{tools: [{name: save, replies: [{writes: [{file: {argument: f}, content: x}], text: wrote}]}]}`, folder)
	for _, file := range []string{"../up.md", "/tmp/sallyport-absolute.md", "sub/../../up.md", ""} {
		c.Call("save", `{"f":"`+file+`"}`)
	}
	c.End()
	for _, e := range record(t, folder) {
		if e.Wrote != "" {
			t.Errorf("it wrote %q", e.Wrote)
		}
	}
	if !strings.Contains(c.Stderr(), "write a file") && !strings.Contains(c.Stderr(), "make a folder") {
		t.Errorf("it did not say so: %s", c.Stderr())
	}
}

func TestServe_RefusesToWriteWithoutAFolder(t *testing.T) {
	t.Parallel()
	cmd := play(t, `{tools: [{name: save, replies: [{writes: [{file: a, content: b}]}]}]}`, "")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "name a folder") {
		t.Errorf("%s, %v", out, err)
	}
}

// The record is there before anything is done, as it came, and goes on from start to start.
func TestRecord_HoldsWhatCame(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const yaml = `{tools: [{name: find, replies: [{exit: 1}, {text: there}]}]}`
	pipe(t, yaml, folder, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"find","arguments":{"b":1e5,"a":"é"}}}`)
	file := filepath.Join(folder, scriptserver.RecordFile)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, `{"start":1,"meth`); err != nil { // a server that was killed while it noted
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	pipe(t, yaml, folder, `Hello`, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"find"}}`)
	var got []string
	for _, e := range record(t, folder) {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	want := []string{
		`{"start":1}`,
		`{"start":1,"method":"tools/call","id":"a","tool":"find","params":{"name":"find","arguments":{"b":1e5,"a":"é"}},"reply":"tools.0.replies.0"}`,
		`{"start":2}`,
		`{"start":2,"junk":"Hello"}`,
		`{"start":2,"answer":{"jsonrpc":"2.0","id":3,"result":{}}}`,
		`{"start":2,"method":"notifications/x"}`,
		`{"start":2,"method":"tools/call","id":5,"tool":"find","params":{"name":"find"},"reply":"tools.0.replies.1"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the record is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestForget_CountsFromTheBeginning(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find"}}`
	const yaml = `{forget: true, tools: [{name: find, replies: [{when: {start: 2-}, text: again}, {text: first}, {text: second}]}]}`
	if out := pipe(t, yaml, folder, call, call); !strings.Contains(out[0], "first") || !strings.Contains(out[1], "second") {
		t.Errorf("%q", out)
	}
	if out := pipe(t, yaml, folder, call, call); !strings.Contains(out[0], "again") || !strings.Contains(out[1], "first") {
		t.Errorf("%q", out)
	}
}

func TestWhen_CountsStartsListsAndCalls(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const yaml = `
tools:
  - name: find
    description: old
    changes:
      - {when: {lists: 3-}, description: new}
      - {when: {calls: 2-}, title: called, members: {x: 1}}
      - {when: {start: 2}, name: found, annotations: {readOnlyHint: true}}
      - {when: {exists: flag}, gone: true}
    replies:
      - {when: {lists: "1-2"}, text: early, times: 9}
      - {text: late, writes: [{file: flag, content: x}]}
  - {name: second, when: {absent: flag}}
  - {name: third, when: {exists: flag}, raw: '{"name":"third","name":"3"}'}
`
	c := start(t, yaml, folder)
	one := func() string { return string(c.Tools()[0]) }
	if got, again := one(), one(); got != again || !strings.Contains(got, `"description":"old"`) {
		t.Errorf("the first lists: %s, %s", got, again)
	}
	if got := texts(c.Call("find", `{}`)); got != "early" {
		t.Errorf("a call after two lists: %q", got)
	}
	if got := one(); got != `{"name":"find","description":"new","inputSchema":{"type":"object"}}` {
		t.Errorf("the third list: %s", got)
	}
	c.End()
	c = start(t, yaml, folder)
	if got := texts(c.Call("find", `{}`)); got != "late" {
		t.Errorf("a call by its first name: %q", got)
	}
	if got := names(t, c); got != "3" { // a decoder takes the last of two names
		t.Errorf("with a flag: %q", got)
	}
	if err := os.Remove(filepath.Join(folder, scriptserver.FilesDir, "flag")); err != nil {
		t.Fatal(err)
	}
	if got := one(); got != `{"name":"found","title":"called","description":"new","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"x":1}` {
		t.Errorf("the second start: %s", got)
	}
}

func TestTools_AreMadeInNumbers(t *testing.T) {
	t.Parallel()
	c := start(t, `
tools:
  - {name: tool-$N, count: 3, description: Number $N., replies: [{text: one of three}]}
  - {name: same, count: 2}
  - {name: big, description: {text: x, times: 20000}, input_schema: {type: object, properties: {deep: {$nest: {of: {type: array, items: $here}, times: 9, end: {type: string}}}}}}
  - {name: wide, input_schema: {type: object, properties: {$object: {of: {type: string}, times: 3}}, required: {$list: {of: m1, times: 2}}}}
`, "")
	if got := names(t, c); got != "tool-1 tool-2 tool-3 same same big wide" {
		t.Errorf("%s", got)
	}
	all := c.Tools()
	if got := string(all[1]); !strings.Contains(got, `"description":"Number 2."`) {
		t.Errorf("%s", got)
	}
	if got := string(all[5]); len(got) < 20_000 || !strings.HasSuffix(got, strings.Repeat(`{"items":`, 9)+`{"type":"string"}`+strings.Repeat(`,"type":"array"}`, 9)+`},"type":"object"}}`) {
		t.Errorf("%d bytes: %.300s", len(got), got[20_000:])
	}
	if got := string(all[6]); !strings.Contains(got, `{"properties":{"m1":{"type":"string"},"m2":{"type":"string"},"m3":{"type":"string"}},"required":["m1","m1"],"type":"object"}`) {
		t.Errorf("%s", got)
	}
	if got := texts(c.Call("tool-3", `{}`)); got != "one of three" {
		t.Errorf("%q", got)
	}
}

func TestPages_AreCut(t *testing.T) {
	t.Parallel()
	type page struct {
		tools int
		next  string
	}
	for yaml, want := range map[string][]page{
		`{tools: [{name: t$N, count: 5}], pages: {size: 2}}`:                              {{2, "page-2"}, {2, "page-3"}, {1, ""}},
		`{tools: [{name: t$N, count: 4}], pages: {size: 2}}`:                              {{2, "page-2"}, {2, ""}},
		`{tools: [{name: t$N, count: 3}], pages: {cursors: [a, a]}}`:                      {{3, "a"}, {0, "a"}, {0, ""}},
		`{tools: [{name: t$N, count: 2}], pages: {size: 1, cursors: [a], endless: true}}`: {{1, "a"}, {1, "page-3"}, {0, "page-4"}, {0, "page-5"}},
		`{pages: {size: 1}}`: {{0, ""}},
	} {
		c := start(t, yaml, "")
		params := map[string]any{}
		for i, p := range want {
			var got struct {
				Tools      []json.RawMessage
				NextCursor string
			}
			if err := json.Unmarshal(c.Result("tools/list", params), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Tools) != p.tools || got.NextCursor != p.next {
				t.Errorf("%s: page %d has %d tools and cursor %q, want %v", yaml, i+1, len(got.Tools), got.NextCursor, p)
			}
			params["cursor"] = got.NextCursor
		}
		c.End()
	}
}

func TestMethods_StandBeforeTheRest(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := start(t, `
tools: [{name: find, replies: [{text: its own}]}]
methods:
  tools/call: [{arguments: {q: x}, text: for x}, {text: for all}]
  ping: [{error: {code: 5, message: no}}, {}]
  notifications/note: [{before: [{line: '{"jsonrpc":"2.0","id":"s1","method":"roots/list"}'}]}]
`, folder)
	if a, b := texts(c.Call("find", `{"q":"x"}`)), texts(c.Call("gone", `{}`)); a != "for x" || b != "for all" {
		t.Errorf("%q, %q", a, b)
	}
	if m := c.Reply("ping", nil); m.Error == nil || m.Error.Code != 5 {
		t.Errorf("%+v", m)
	}
	c.Result("ping", nil)
	c.Send(`{"jsonrpc":"2.0","method":"notifications/note"}`)
	if m, ok := c.Next(); !ok || m.Method != "roots/list" {
		t.Fatalf("%+v", m)
	}
	c.Send(`{"jsonrpc":"2.0","id":"s1","error":{"code":-32601,"message":"no"}}`)
	c.End()
	if last := record(t, folder); string(last[len(last)-1].Answer) != `{"jsonrpc":"2.0","id":"s1","error":{"code":-32601,"message":"no"}}` {
		t.Errorf("%+v", last[len(last)-1])
	}
}

func TestHold_PutsAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	c := start(t, `{tools: [{name: find, replies: [{text: a, hold: 2}, {text: b, hold: 1}, {text: c}]}]}`, "")
	var sent, got []string
	for range 3 {
		sent = append(sent, c.Request("tools/call", map[string]any{"name": "find"}))
	}
	for range 3 {
		m, ok := c.Next()
		if !ok {
			t.Fatal("the server ended")
		}
		got = append(got, string(m.ID))
	}
	if want := []string{sent[2], sent[1], sent[0]}; !slices.Equal(got, want) {
		t.Errorf("answered %q, want %q", got, want)
	}
}

func TestDelay_LeavesTheServerFreeAndEndsWithACancellation(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const yaml = `{tools: [{name: slow, replies: [{delay: 10m, text: late, writes: [{file: late, content: x}]}, {delay: 1ms, text: soon}]}]}`
	c := start(t, yaml, folder)
	id := c.Request("tools/call", map[string]any{"name": "slow"})
	if got := texts(c.Call("slow", `{}`)); got != "soon" {
		t.Errorf("%q", got)
	}
	c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	if code := c.End(); code != 0 { // it does not wait ten minutes
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(folder, scriptserver.FilesDir, "late")); err == nil {
		t.Error("what was cancelled was done")
	}
}

// What is waiting when the input ends is answered.
func TestDelay_IsWaitedForAtTheEnd(t *testing.T) {
	t.Parallel()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	const yaml = `tools: [{name: slow, replies: [{delay: 30ms, text: late}]}]`
	if out := pipe(t, yaml, "", call); !strings.Contains(out[0], "late") {
		t.Errorf("%q", out)
	}
	if out := pipe(t, yaml, "", call, cancel); out[0] != "" {
		t.Errorf("cancelled: %q", out)
	}
	if out := pipe(t, "ignores: [cancel]\n"+yaml, "", call, cancel); !strings.Contains(out[0], "late") {
		t.Errorf("cancelled, which it ignores: %q", out)
	}
}

func TestStarts_AreTakenByTheirConditions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const yaml = `{starts: [{when: {start: 1}, stderr: [{line: not today}], exit: 7}, {when: {start: "2-3"}, before: [{line: "\e[2J"}]}]}`
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for n, want := range []string{"", "\x1b[2J\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`, "\x1b[2J\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		cmd := play(t, yaml, folder)
		cmd.Stdin = strings.NewReader(ping + "\n")
		out, _ := cmd.Output() // the first ends with 7
		if got := strings.TrimSuffix(string(out), "\n"); got != want && n > 0 || n == 0 && cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("start %d: %q, %v", n+1, got, cmd.ProcessState)
		}
	}
}

// raw is a child whose output need not be frames.
type raw struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	pid int
	end func() int // kills it
}

func startRaw(t *testing.T, yaml, folder string) *raw {
	t.Helper()
	cmd := play(t, yaml, folder)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &raw{t: t, in: in, out: bufio.NewReader(out), pid: cmd.Process.Pid}
	r.end = func() int {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode()
	}
	t.Cleanup(func() { r.end() })
	return r
}

func (r *raw) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) line() string {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// CASES X5: it takes more than a request to end a server.
func TestIgnores_EndAndTerminate(t *testing.T) {
	t.Parallel()
	r := startRaw(t, `{ignores: [end, terminate]}`, "")
	r.send(pingLine)
	r.line()
	_ = r.in.Close()
	if err := syscall.Kill(r.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if gone(r.pid, 100*time.Millisecond) {
		t.Error("it ended")
	}
	if code := r.end(); code != -1 {
		t.Errorf("exit code %d", code)
	}
}

func TestDeaf_ReadsNoMore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := startRaw(t, `{methods: {ping: [{deaf: true}]}}`, folder)
	r.send(pingLine)
	r.line()
	for range 100 {
		r.send(pingLine)
	}
	_ = r.in.Close()
	if gone(r.pid, 100*time.Millisecond) {
		t.Error("it heard the end of its input")
	}
	if n := received(t, folder, "ping"); n != 1 {
		t.Errorf("it took %d requests", n)
	}
}

func TestCloseStdout_LeavesTheServerRunning(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := startRaw(t, `{methods: {ping: [{close_stdout: true}]}}`, folder)
	r.send(pingLine)
	if line, err := r.out.ReadString('\n'); err != io.EOF || line != "" {
		t.Errorf("%q, %v", line, err)
	}
	r.send(pingLine)
	_ = r.in.Close()
	if !gone(r.pid, 10*time.Second) || received(t, folder, "ping") != 2 {
		t.Error("it went on without its input, or did not go on")
	}
}

func TestFrames_FloodWithoutMemory(t *testing.T) {
	t.Parallel()
	r := startRaw(t, `{methods: {ping: [{frames: [{raw: abc, times: 100000000}, {line: end}]}]}}`, "")
	r.send(pingLine)
	if n, err := io.CopyN(io.Discard, r.out, 300_000_000); err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if got := r.line(); got != "end" {
		t.Errorf("%.100q", got)
	}
	if kb := peak(t, r.pid); kb > 100<<10 {
		t.Errorf("it took %d KiB of memory", kb)
	}
}

// peak is the most memory that a process has used, in KiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

func TestFrames_PauseBetween(t *testing.T) {
	t.Parallel()
	r := startRaw(t, `{methods: {ping: [{frames: [{raw: a, times: 3, pause: 20ms}, {line: b}]}]}}`, "")
	began := time.Now()
	r.send(pingLine)
	if got := r.line(); got != "aaab" || time.Since(began) < 60*time.Millisecond {
		t.Errorf("%q after %v", got, time.Since(began))
	}
}

func TestSpawn_LeavesAProcess(t *testing.T) { // not beside a bridge, which would end the process
	folder := t.TempDir()
	r := startRaw(t, `
methods:
  ping:
    - {spawn: {new_session: true, bare: true, stubborn: true, keep_stdout: true, for: 10m}, exit: 0}
`, folder)
	r.send(pingLine)
	if !gone(r.pid, 10*time.Second) {
		t.Fatal("the server did not end")
	}
	entries := record(t, folder)
	pid := entries[len(entries)-1].Spawned
	if pid == 0 {
		t.Fatalf("%+v", entries)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	stat, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+1:])
	if len(environ) > 0 || fields[3] != fmt.Sprint(pid) {
		t.Errorf("environment %q, session %s of %d", environ, fields[3], pid)
	}
	for !ignoresTerm(t, pid) {
		time.Sleep(time.Millisecond) // another process begins to, and says so nowhere else
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil || gone(pid, 100*time.Millisecond) {
		t.Errorf("it took SIGTERM: %v", err)
	}
}

// ignoresTerm reports whether a process ignores SIGTERM.
func ignoresTerm(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var mask uint64
		if n, _ := fmt.Sscanf(line, "SigIgn: %x", &mask); n == 1 {
			return mask&(1<<(syscall.SIGTERM-1)) != 0
		}
	}
	return false
}

func TestSpawn_EndsByItself(t *testing.T) { // not beside a bridge, which would end the process
	folder := t.TempDir()
	pipe(t, `{methods: {ping: [{spawn: {for: 10ms}}]}}`, folder, pingLine)
	entries := record(t, folder)
	if pid := entries[len(entries)-1].Spawned; pid == 0 || !gone(pid, 10*time.Second) {
		t.Errorf("%+v", entries)
	}
}
