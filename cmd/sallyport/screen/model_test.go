package screen

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
	"sallyport/cmd/sallyport/terminal"
)

// onRun is a screen's model on a run, without a terminal.
func onRun(t testing.TB, e agent.Engine, id string) *model {
	t.Helper()
	s, err := debug.Open(context.Background(), e, id)
	if err != nil {
		t.Fatal(err)
	}
	return newModel(context.Background(), Config{
		Session: func() *debug.Session { return s },
		Candidate: func(context.Context, agent.Run) (terminal.Pending, error) {
			return terminal.Pending{}, io.ErrUnexpectedEOF
		},
		Context: func(context.Context, agent.Run, int64) ([]Message, error) {
			return []Message{{"user", strings.Repeat("text 文字 ", 200)}}, nil
		},
		Answer:    func(context.Context, agent.Run) (string, error) { return "the answer", nil },
		Detail:    func(agent.Entry) string { return "what a line adds" },
		Displayed: func() string { return "" },
		Do: func(_ context.Context, line string, out io.Writer) error {
			_, err := fmt.Fprintln(out, line)
			return err
		},
		Acts:     func(string) bool { return false },
		Complete: func(string) []string { return []string{"one", "other"} },
		Allow:    func(bool) {},
		Poll:     time.Hour,
	})
}

// settle does what a key has started, until nothing is left to do.
func (m *model) settle(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			m.settle(c)
		}
	case done, talk:
		_, next := m.Update(msg)
		m.settle(next)
	}
}

// hitKeys presses keys by their names.
func (m *model) hitKeys(names ...string) {
	for _, name := range names {
		key := tea.Key{Text: name, Code: []rune(name)[0]}
		switch name {
		case "enter":
			key = tea.Key{Code: tea.KeyEnter}
		case "tab":
			key = tea.Key{Code: tea.KeyTab}
		case "esc":
			key = tea.Key{Code: tea.KeyEscape}
		}
		_, cmd := m.Update(tea.KeyPressMsg(key))
		m.settle(cmd)
	}
}

// played is a run of three calls, in memory.
func played(t testing.TB) agent.Engine {
	t.Helper()
	e := enginetest.NewMemory(nil, nil)
	serve(t, e, enginetest.Spec("r"), enginetest.Script{{enginetest.ToolRead}, {enginetest.ToolRead, enginetest.ToolWrite}})
	return e
}

func serve(t testing.TB, e agent.Engine, spec agent.Spec, script enginetest.Script) {
	t.Helper()
	ctx := context.Background()
	if _, err := e.Start(ctx, spec, "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
	if err := e.Serve(ctx, agent.ServeOptions{Runs: []string{spec.Run}}, (&enginetest.World{}).Nodes(script)); err != nil {
		t.Fatal(err)
	}
}

// In no size, and in no place, is anything drawn outside of the terminal.
func TestModel_DrawsWithinTheTerminal(t *testing.T) {
	m := onRun(t, played(t), "r")
	for _, width := range []int{1, 2, 20, 63, 64, 80, 119, 120, 200} {
		for _, height := range []int{1, 3, 13, 14, 24, 39, 40, 60} {
			_, cmd := m.Update(tea.WindowSizeMsg{Width: width, Height: height})
			m.settle(cmd)
			for _, key := range []string{"g", "0", "1", "2", "3", "4", "5", "6", "j", "G", "k", "enter", "tab", "?", "j", "esc", "esc", ":", "x", "enter", "/", "e", "enter", "n", "esc", "esc"} {
				m.hitKeys(key)
				rows := strings.Split(m.frame, "\n")
				if len(rows) > height {
					t.Fatalf("%dx%d after %s: %d rows", width, height, key, len(rows))
				}
				for i, r := range rows {
					if cells(r) > width {
						t.Fatalf("%dx%d after %s: row %d has %d cells: %q", width, height, key, i, cells(r), r)
					}
				}
			}
		}
	}
}

// The picture has each row and each state of the table, and no other; an operator's rows,
// which lead on from anywhere, are left to the pane.
func TestPicture_SaysWhatTheTableSays(t *testing.T) {
	var words []string
	for _, l := range picture {
		for _, w := range wordsOf(l) {
			if w = strings.Trim(w, " ,:"); w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz_") == "" && w != "v" {
				words = append(words, w)
			}
		}
		if cells(l) > pictureWidth {
			t.Errorf("%d cells, more than %d: %s", cells(l), pictureWidth, l)
		}
	}
	var want []string
	for _, s := range agent.States() {
		want = append(want, string(s))
	}
	for _, row := range agent.Table() {
		if row.To != "" && !always(row) && !slices.Contains(want, string(row.Row)) {
			want = append(want, string(row.Row))
		}
	}
	slices.Sort(words)
	slices.Sort(want)
	if !slices.Equal(slices.Compact(words), want) {
		t.Errorf("the picture has %q,\nthe table %q", words, want)
	}
}

func TestPrompt_TakesOnlyWhatIsVisible(t *testing.T) {
	p := prompt{}
	p.open(':')
	p.add("a\x1b[2J\u202eb\n\x9bc ⟦")
	if p.text != "a[2Jbc " {
		t.Errorf("%q", p.text)
	}
	p.text = ""
	p.add(strings.Repeat("x", maxPrompt+1))
	if len(p.text) != maxPrompt {
		t.Errorf("%d bytes", len(p.text))
	}
}

func TestPrompt_RecallsAndCompletes(t *testing.T) {
	m := onRun(t, played(t), "r")
	var kept []string
	m.config.Remember = func(line string) { kept = append(kept, line) }
	m.hitKeys(":", "o", "tab")
	if m.prompt.text != "one" {
		t.Errorf("completed to %q", m.prompt.text)
	}
	m.hitKeys("tab", "enter")
	if len(m.output) == 0 || m.output[len(m.output)-1].text != "other" {
		t.Errorf("the output is %v", m.output)
	}
	m.prompt.open(':')
	m.prompt.recall(-1)
	if m.prompt.text != "other" {
		t.Errorf("recalled %q", m.prompt.text)
	}
	if !slices.Equal(kept, []string{"other"}) {
		t.Errorf("kept %q", kept)
	}
}

// Breaking ours between words, and what others wrote behind its gutter, loses nothing.
func TestBroken_LosesNothing(t *testing.T) {
	for _, text := range []string{
		"argument content (text, 72 characters, 72 bytes), with a very long word " + strings.Repeat("x", 90),
		"  │ " + strings.Repeat("日本語 text ", 20), "", "short", strings.Repeat("y", 500),
	} {
		for _, width := range []int{10, 20, 47, 80} {
			var all strings.Builder
			for i, part := range broken(text, width) {
				if cells(part) > width {
					t.Errorf("%d cells in a width of %d: %q", cells(part), width, part)
				}
				if i > 0 {
					part = strings.TrimPrefix(strings.TrimPrefix(part, indent), carried)
				}
				all.WriteString(part)
			}
			if spaceless(all.String()) != spaceless(text) {
				t.Errorf("width %d: %q\nbecame %q", width, text, all.String())
			}
		}
	}
}

func spaceless(s string) string { return strings.ReplaceAll(s, " ", "") }

// BenchmarkScroll is a run of 10,000 steps on disk, gone through a step, and a page, at a
// time on a large terminal. Target: less than 20 ms for each.
func BenchmarkScroll(b *testing.B) {
	dir, err := os.MkdirTemp(os.Getenv("SALLYPORT_BENCH_DIR"), "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // left to the system's own cleaning otherwise
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	spec := enginetest.Spec("long")
	spec.Budget = agent.Budget{Calls: 10_000, Turns: 10_000, Tokens: 1 << 40, Wall: 1 << 20}
	script := make(enginetest.Script, 2_500)
	for i := range script {
		script[i] = []string{enginetest.ToolRead}
	}
	serve(b, e, spec, script)
	m := onRun(b, e, "long")
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	for _, key := range []struct{ name, key, again string }{{"step", "j", "g"}, {"page", " ", "g"}, {"journal", "j", "g"}, {"search", "n", "g"}} {
		b.Run(key.name, func(b *testing.B) {
			m.hitKeys("esc", "esc", "g")
			switch key.name {
			case "journal":
				m.hitKeys("3")
			case "search":
				m.hitKeys("/")
				m.prompt.add("returned")
				m.hitKeys("enter")
			}
			for b.Loop() {
				if m.session().Position().Step >= m.session().Steps()-60 {
					m.hitKeys(key.again)
				}
				m.hitKeys(key.key)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/key")
		})
	}
}
