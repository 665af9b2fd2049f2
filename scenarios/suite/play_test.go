package suite

import (
	"os"
	"strings"
	"testing"

	"sallyport/scenarios"
)

// realSuite plays the files of a tree with real parts.
func realSuite(t *testing.T, files map[string]string) *Suite {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	files["sallyport.yaml"] = calcConfig
	tree(t, files)
	found, err := Find([]string{"."}, scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &Suite{Player: []string{self, "play"}, Cases: found.Cases, Jobs: 2, Keep: KeepNone}
}

func TestPlay_RealScenarios(t *testing.T) {
	s := realSuite(t, map[string]string{
		"good.yaml":    calcScenario,
		"wrong.yaml":   strings.Replace(calcScenario, "completed", "failed", 1),
		"nothing.yaml": strings.Replace(calcScenario, "{state: completed}", `{reason: ""}`, 1),
		"script.yaml":  strings.Replace(calcScenario, "    - say: It is 12.\n", "", 1),
	})
	sum, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name   string
		status Status
		text   string
	}{
		{"good", StatusPassed, ""},
		{"nothing", StatusFailed, "the scenario expects nothing"},
		{"script", StatusFailed, "script.yaml:5: the script: the script has ended"},
		{"wrong", StatusFailed, `got "completed", want "failed"`},
	} {
		r := sum.Results[i]
		if r.Name != want.name || r.Status != want.status {
			t.Errorf("%+v, want %s", r, want.status)
		}
		if want.text != "" && !strings.Contains(r.Failures[0].String(), want.text) {
			t.Errorf("%s: %q", r.Name, r.Failures[0])
		}
	}
	if sum.Results[0].State != "completed" {
		t.Errorf("%+v", sum.Results[0])
	}
	empty(t, os.Getenv("TMPDIR"))
}

// A file that changed between the search and the play is said to have.
func TestPlay_CaseThatIsGone(t *testing.T) {
	s := realSuite(t, map[string]string{"good.yaml": calcScenario})
	s.Cases[0].name = "other"
	sum, err := s.Run(t.Context())
	if err != nil || sum.Results[0].Status != StatusError || !strings.Contains(sum.Results[0].Failures[0].Message, "does not hold that case any more") {
		t.Errorf("%+v, %v", sum, err)
	}
}

// What only lists nothing asserts nothing; that there are no calls is an assertion.
func TestAssertsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		expect  scenarios.Expect
		nothing bool
	}{
		"nothing":         {scenarios.Expect{}, true},
		"empty lists":     {scenarios.Expect{NotSent: []string{}, Files: map[string]scenarios.File{}, Events: []scenarios.ExpectEvent{}}, true},
		"a state":         {scenarios.Expect{State: "completed"}, false},
		"no calls at all": {scenarios.Expect{Calls: []scenarios.ExpectCall{}}, false},
		"a file":          {scenarios.Expect{Files: map[string]scenarios.File{"reports/a.md": {}}}, false},
		"not paused":      {scenarios.Expect{Held: new(bool)}, false},
	} {
		if got := assertsNothing(c.expect); got != c.nothing {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFailure_OfSeveralLinesIsADifference(t *testing.T) {
	f := failureOf(scenarios.Mismatch{Path: "expect.files.a", Want: "one\ntwo\nthree\n", Got: "one\n2\nthree", File: "f.yaml", Line: 3})
	if f.Diff != "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three" {
		t.Errorf("%q", f.Diff)
	}
	if one := failureOf(scenarios.Mismatch{Path: "expect.state", Want: "a", Got: "b"}); one.Diff != "" {
		t.Errorf("%+v", one)
	}
	long := strings.Repeat("x\n", 200)
	if shown := strings.Split(difference("y\n", long), "\n"); len(shown) != maxDiff+1 || shown[maxDiff] != "… and 142 more lines" {
		t.Errorf("%d lines, the last %q", len(shown), shown[len(shown)-1])
	}
}

func TestPlay_OrderThatIsNone(t *testing.T) {
	if err := Play(t.Context(), strings.NewReader("x"), os.Stdout, scenarios.StageOptions{Self: "self"}); err == nil || !strings.Contains(err.Error(), "read what to play") {
		t.Errorf("%v", err)
	}
}

// BenchmarkOverhead is what one scenario of one call costs, all told.
func BenchmarkOverhead(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Chdir(b.TempDir())
	for name, text := range map[string]string{"sallyport.yaml": calcConfig, "good.yaml": calcScenario} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	found, err := Find([]string{"."}, scenarios.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := Suite{Player: []string{self, "play"}, Cases: found.Cases}
		if sum, err := s.Run(b.Context()); err != nil || !sum.OK() {
			b.Fatalf("%+v, %v", sum, err)
		}
	}
}
