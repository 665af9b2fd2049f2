package audit_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
)

func (d *desk) export(bodies func(agent.BodyRef) ([]byte, error)) string {
	d.t.Helper()
	var b strings.Builder
	if err := audit.Export(&b, d.journal(), bodies); err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

func checkFile(file string) (audit.Report, error) {
	return audit.CheckExport(strings.NewReader(file), keys("alice", "bob"))
}

func TestExport_HoldsAllOfARun(t *testing.T) {
	for name, d := range map[string]*desk{"story": story(t), "edited": edited(t), "expired": expired(t), "unknown": unknown(t)} {
		want := d.clean()
		got, err := audit.CheckExport(iotest.OneByteReader(strings.NewReader(d.export(d.body))), keys("bob", "carol", "alice"))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, want)
		}
	}
}

// The file is the same every time, and holds the entries as they are stored.
func TestExport_IsStable(t *testing.T) {
	d := edited(t)
	file := d.export(d.body)
	if file != d.export(d.body) {
		t.Error("two exports of one run differ")
	}
	for _, e := range d.entries {
		if !strings.Contains(file, "\n{\"entry\":"+string(e.Bytes())+"}\n") {
			t.Errorf("entry %d is not in it as it is stored", e.Seq)
		}
	}
	if !strings.HasPrefix(file, `{"sallyport_export":0,"run":"r"}`+"\n") {
		t.Errorf("it begins %.60s", file)
	}
}

func TestExport_WithoutBodies(t *testing.T) {
	d := edited(t)
	secret := "told 5"
	if !strings.Contains(d.export(d.body), base64.StdEncoding.EncodeToString([]byte(secret))[:7]) {
		t.Fatal("the secret is not even in the whole export")
	}
	got, err := checkFile(d.export(audit.WithoutBodies))
	if err != nil || got.Counts.Bodies != 0 || got.Counts.NotIncluded != len(d.bodies) {
		t.Errorf("%+v of %d, %v", got.Counts, len(d.bodies), err)
	}
	if file := d.export(nil); file != d.export(audit.WithoutBodies) || strings.Contains(file, `"data":""`) || strings.Count(file, "left_out") != len(d.bodies) {
		t.Errorf("content is in it:\n%s", file)
	}
	// Leaving out one leaves the others checked.
	got, err = checkFile(d.export(func(ref agent.BodyRef) ([]byte, error) {
		if ref == enginetest.Task.Ref {
			return nil, fmt.Errorf("the task: %w", audit.ErrNotIncluded)
		}
		return d.body(ref)
	}))
	if err != nil || got.Counts.NotIncluded != 1 || got.Counts.Bodies != len(d.bodies)-1 {
		t.Errorf("%+v, %v", got.Counts, err)
	}
}

func TestExport_MarksWhatIsErased(t *testing.T) {
	d := edited(t)
	d.erase(enginetest.Task.Ref)
	file := d.export(d.body)
	if !strings.Contains(file, `"bytes":23,"absent":"erased"}`) {
		t.Errorf("no mark:\n%s", file)
	}
	if got, err := checkFile(file); err != nil || got.Counts.Erased != 1 {
		t.Errorf("%+v, %v", got.Counts, err)
	}
	// The mark itself proves nothing.
	d = edited(t)
	delete(d.bodies, enginetest.Task.Ref)
	file = d.export(d.body)
	for _, mark := range []string{"missing", "erased"} {
		_, err := checkFile(strings.Replace(file, `"absent":"missing"`, `"absent":"`+mark+`"`, 1))
		named(t, "marked "+mark, err, 1, audit.BreakBody)
	}
}

func TestExport_Errors(t *testing.T) {
	d := edited(t)
	broken := errors.New("the disk is gone")
	fails := func(agent.BodyRef) ([]byte, error) { return nil, broken }
	if err := audit.Export(io.Discard, d.journal(), fails); !errors.Is(err, broken) {
		t.Errorf("a body that cannot be read: %v", err)
	}
	if err := audit.Export(io.Discard, journal(nil), d.body); err == nil {
		t.Error("an empty journal was exported")
	}
	noRun := func(yield func(agent.Entry, error) bool) { yield(agent.Entry{}, agent.ErrNoRun) }
	if err := audit.Export(io.Discard, noRun, d.body); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
	r, w := io.Pipe()
	_ = r.CloseWithError(broken)
	if err := audit.Export(w, d.journal(), d.body); !errors.Is(err, broken) {
		t.Errorf("a full disk: %v", err)
	}
}

func TestCheckExport_NamesEveryBreak(t *testing.T) {
	d := granted(t)
	d.sent(agent.StatusOK, agent.ClassOK)
	d.answers()
	lines := strings.SplitAfter(strings.TrimSuffix(d.export(d.body), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	entries := int64(len(d.entries))
	replace := func(i int, old, new string) func([]string) []string {
		return func(l []string) []string {
			if !strings.Contains(l[i], old) {
				t.Fatalf("line %d has no %s: %s", i, old, l[i])
			}
			l[i] = strings.Replace(l[i], old, new, 1)
			return l
		}
	}
	without := func(i int) func([]string) []string {
		return func(l []string) []string { return slices.Delete(l, i, i+1) }
	}
	first := int(entries) + 1 // the first body
	for _, tc := range []struct {
		name   string
		change func([]string) []string
		seq    int64
		what   audit.What
	}{
		{"a flipped byte", replace(4, `permission_refused`, `permission_refuseD`), 4, ""},
		{"a flipped byte of an entry", replace(6, `"time":"2026`, `"time":"2025`), 6, ""},
		{"a removed entry", without(4), 4, audit.BreakChain},
		{"the first entry removed", without(1), 1, audit.BreakChain},
		{"two entries swapped", func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, 3, audit.BreakChain},
		{"the last entry removed", without(int(entries)), entries - 1, audit.BreakEntry},
		{"the end removed", without(len(lines) - 1), entries, audit.BreakEntry},
		{"cut off behind the header", func(l []string) []string { return l[:1] }, 1, audit.BreakEntry},
		{"cut off in a line", func(l []string) []string { l[4] = l[4][:40]; return l[:5] }, 4, audit.BreakEntry},
		{"a changed body", replace(first, `"data":"`, `"data":"QUJD`), 1, audit.BreakBody},
		{"a body removed", without(first), entries, audit.BreakEntry},
		{"the last body removed", without(len(lines) - 2), entries, audit.BreakEntry},
		{"a body twice", func(l []string) []string { return slices.Insert(l, first, l[first]) }, entries, audit.BreakEntry},
		{"a body that is absent for no reason", replace(first, `"data"`, `"absent":"lost","data"`), entries, audit.BreakEntry},
		{"a body that is absent and there", replace(first, `"data"`, `"absent":"left_out","data"`), entries, audit.BreakEntry},
		{"an entry behind the bodies", func(l []string) []string { return slices.Insert(l, first+1, l[1]) }, entries, audit.BreakEntry},
		{"something behind the end", func(l []string) []string { return append(l, l[first]) }, entries, audit.BreakEntry},
		{"an unknown line", func(l []string) []string { return slices.Insert(l, 3, "{\"more\":1}\n") }, 3, audit.BreakEntry},
		{"an empty line", func(l []string) []string { return slices.Insert(l, 3, "\n") }, 3, audit.BreakEntry},
		{"an end that says otherwise", replace(len(lines)-1, `"entries":`, `"entries":1`), entries, audit.BreakEntry},
		{"the name of another run", replace(0, `"run":"r"`, `"run":"s"`), 2, audit.BreakEntry},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := checkFile(strings.Join(tc.change(slices.Clone(lines)), ""))
			var b *audit.Break
			if !errors.As(err, &b) || !errors.Is(err, agent.ErrIntegrity) || b.Seq != tc.seq || tc.what != "" && b.What != tc.what {
				t.Errorf("got %v, want %s at entry %d", err, tc.what, tc.seq)
			}
		})
	}
}

// Every journal that Check breaks on is broken as an export too, at the same place.
func TestCheckExport_SeesWhatCheckSees(t *testing.T) {
	d := unknown(t)
	rewrite(d, d.last(agent.KindChecked), func(c *agent.Checked) { c.Arguments = d.store(`{"n":9}`) })
	_, want := audit.Check(d.journal(), d.body)
	_, got := checkFile(d.export(d.body))
	if want == nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestCheckExport_TrustsOnlyTheKeysItIsGiven(t *testing.T) {
	d := edited(t)
	file := d.export(d.body)
	for _, trusted := range [][]string{nil, keys("alice"), keys("alice", "carol")} {
		_, err := audit.CheckExport(strings.NewReader(file), trusted)
		named(t, fmt.Sprint(trusted), err, 1, audit.BreakTrust)
	}
	renamed := strings.Replace(keys("bob")[0], " bob", " robert", 1)
	_, err := audit.CheckExport(strings.NewReader(file), append(keys("alice"), renamed))
	named(t, "another name", err, 1, audit.BreakTrust)
	if _, err := audit.CheckExport(strings.NewReader(file), []string{"ssh-ed25519 AAAA alice"}); err == nil || errors.Is(err, agent.ErrIntegrity) {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestCheckExport_RefusesOtherFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want error
	}{
		"empty":              {"", audit.ErrNotExport},
		"text":               {"hello\n", audit.ErrNotExport},
		"JSON":               {"{}\n", audit.ErrNotExport},
		"no run":             {`{"sallyport_export":0}` + "\n", audit.ErrNotExport},
		"more in the header": {`{"sallyport_export":0,"run":"r","more":1}` + "\n", audit.ErrNotExport},
		"an older format":    {`{"sallyport_export":-1,"run":"r"}` + "\n", audit.ErrNotExport},
		"a newer format":     {`{"sallyport_export":1,"other":"r"}` + "\n", agent.ErrNewer},
		"a newer entry":      {`{"sallyport_export":0,"run":"r"}` + "\n" + `{"entry":{"v":3}}` + "\n", agent.ErrNewer},
	} {
		if _, err := checkFile(tc.file); !errors.Is(err, tc.want) || errors.Is(err, agent.ErrIntegrity) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	broken := errors.New("the disk is gone")
	for _, r := range []io.Reader{iotest.ErrReader(broken), io.MultiReader(strings.NewReader(edited(t).export(nil)[:300]), iotest.ErrReader(broken))} {
		if _, err := audit.CheckExport(r, keys("alice", "bob")); !errors.Is(err, broken) || errors.Is(err, agent.ErrIntegrity) {
			t.Errorf("a file that cannot be read: %v", err)
		}
	}
}

// endless is a line without an end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += int64(len(p))
	return len(p), nil
}

// Exactly at the limit a line is read; past it, and without an end, the file is
// refused once the limit is read, and no further.
func TestCheckExport_BoundsALine(t *testing.T) {
	d := edited(t)
	file := d.export(d.body)
	at := strings.Index(file, "{\"body\"")
	for _, more := range []int{0, 1} {
		line, rest, _ := strings.Cut(file[at:], "\n")
		padded := file[:at] + line + strings.Repeat(" ", audit.MaxLine-len(line)+more) + "\n" + rest
		if _, err := checkFile(padded); (err != nil) != (more > 0) {
			t.Errorf("a line of %d past the limit: %v", more, err)
		}
	}
	e := &endless{}
	_, err := audit.CheckExport(io.MultiReader(strings.NewReader(file[:at]), e), keys("alice", "bob"))
	if !errors.Is(err, agent.ErrIntegrity) || e.read > audit.MaxLine+1<<20 {
		t.Errorf("%d bytes were read: %v", e.read, err)
	}
	big := agent.NewBody(bytes.Repeat([]byte{'x'}, audit.MaxLine))
	d.bodies[big.Ref] = big.Data
	rewrite(d, 2, func(p *agent.Turned) { p.Message = big.Ref })
	if err := audit.Export(io.Discard, d.journal(), d.body); err == nil {
		t.Error("a body over the limit was exported")
	}
}

// FuzzCheckExport: whatever the file, an audit ends in a report or in one of its own
// errors; and what it lets pass is whole: cut short anywhere, it does not.
func FuzzCheckExport(f *testing.F) {
	for _, d := range []*desk{story(f), edited(f), expired(f), unknown(f)} {
		whole := d.export(d.body)
		f.Add([]byte(whole), uint16(10))
		f.Add([]byte(d.export(nil)), uint16(1))
		f.Add([]byte(strings.Replace(whole, "alice", "alicf", 1)), uint16(3))
		f.Add([]byte(whole[:len(whole)/2]), uint16(7))
	}
	trusted := keys("alice", "bob")
	f.Fuzz(func(t *testing.T, file []byte, cut uint16) {
		r, err := audit.CheckExport(bytes.NewReader(file), trusted)
		var b *audit.Break
		switch {
		case err == nil:
			if r.Run == "" || r.Entries < 1 || len(r.Head) != 64 || len(r.Breaks) > 0 {
				t.Fatalf("passed: %+v", r)
			}
			short := file[:max(0, len(file)-1-int(cut))]
			if _, err := audit.CheckExport(bytes.NewReader(short), trusted); err == nil {
				t.Fatalf("passed without its last %d bytes", 1+int(cut))
			}
		case errors.As(err, &b):
			if b.Seq < 0 || b.What == "" || b.Detail == "" || len(r.Breaks) == 0 {
				t.Fatalf("a break that names nothing: %+v", b)
			}
		case !errors.Is(err, agent.ErrNewer) && !errors.Is(err, audit.ErrNotExport):
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}
