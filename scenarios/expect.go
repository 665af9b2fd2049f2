package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools/strictjson"
)

// Expect is what must hold when a scenario's run rests. What is absent is not looked
// at, except that all decisions of the scenario must have been asked for.
type Expect struct {
	// State is where the run ends or waits.
	State agent.State `yaml:"state"`
	// Reason is why it ended, such as budget:tool_calls.
	Reason string `yaml:"reason"`
	// Files maps names, relative to the workspace, to what they must be.
	Files map[string]File `yaml:"files"`
	// Calls are all calls of the run, in order.
	Calls []ExpectCall `yaml:"calls"`
	// NotSent names tools of which no request may have left the Host.
	NotSent []string `yaml:"not_sent"`
}

// File is what a file of the workspace must be.
type File struct {
	Equals   *string `yaml:"equals"`   // its whole content
	Contains Texts   `yaml:"contains"` // each must be in it
	Lacks    Texts   `yaml:"lacks"`    // none may be in it
	Absent   bool    `yaml:"absent"`   // there is no such file
	Mode     string  `yaml:"mode"`     // permissions, such as "0600"
}

// Texts is one text or a list of them.
type Texts []string

// UnmarshalConfig reads both forms.
func (x *Texts) UnmarshalConfig(n config.Node) error {
	if one, ok := n.Text(); ok {
		*x = Texts{one}
		return nil
	}
	return n.Decode((*[]string)(x))
}

// ExpectCall is what must have become of one call.
type ExpectCall struct {
	Tool   string       `yaml:"tool"` // empty: one that the run does not have
	Status agent.Status `yaml:"status"`
	Class  agent.Class  `yaml:"class"`
	Reason string       `yaml:"reason"`
	Sent   *bool        `yaml:"sent"` // whether a request left the Host
}

// outcome is what a play came to.
type outcome struct {
	run       agent.Run
	calls     []Call
	desk      string
	decided   int // decisions that were asked for
	decisions int // decisions that the scenario gives
}

// compare lists what is otherwise than expected.
func (e Expect) compare(o outcome) []string {
	var wrong []string
	differs := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s: got %q, want %q", what, fmt.Sprint(got), fmt.Sprint(want)))
		}
	}
	if e.State != "" {
		differs("state", o.run.State, e.State)
	}
	if e.Reason != "" {
		differs("reason", o.run.Reason, e.Reason)
	}
	if o.decided < o.decisions {
		wrong = append(wrong, fmt.Sprintf("approvals: %d of %d decisions were asked for", o.decided, o.decisions))
	}
	if e.Calls != nil {
		wrong = append(wrong, compareCalls(o.calls, e.Calls)...)
	}
	for _, tool := range e.NotSent {
		if i := slices.IndexFunc(o.calls, func(c Call) bool { return c.Tool == tool && c.Sent }); i >= 0 {
			wrong = append(wrong, fmt.Sprintf("not_sent: call %d was a request to %q", i+1, tool))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		for _, w := range e.Files[name].compare(filepath.Join(o.desk, filepath.FromSlash(name))) {
			wrong = append(wrong, fmt.Sprintf("files: %q: %s", name, w))
		}
	}
	return wrong
}

func compareCalls(got []Call, want []ExpectCall) []string {
	var wrong []string
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			wrong = append(wrong, fmt.Sprintf("calls: call %d, of %q, was not made", i+1, want[i].Tool))
		case i >= len(want):
			wrong = append(wrong, fmt.Sprintf("calls: call %d, of %q (%s), was not expected", i+1, got[i].Tool, got[i].Status))
		default:
			for _, w := range want[i].compare(got[i]) {
				wrong = append(wrong, fmt.Sprintf("calls: call %d: %s", i+1, w))
			}
		}
	}
	return wrong
}

func (e ExpectCall) compare(c Call) []string {
	var wrong []string
	differs := func(what, got, want string) {
		if want != "" && got != want {
			wrong = append(wrong, fmt.Sprintf("%s: got %q, want %q", what, got, want))
		}
	}
	if e.Tool != c.Tool {
		wrong = append(wrong, fmt.Sprintf("tool: got %q, want %q", c.Tool, e.Tool))
	}
	differs("status", string(c.Status), string(e.Status))
	differs("class", string(c.Class), string(e.Class))
	differs("reason", c.Reason, e.Reason)
	if e.Sent != nil && *e.Sent != c.Sent {
		wrong = append(wrong, fmt.Sprintf("sent: got %t, want %t", c.Sent, *e.Sent))
	}
	return wrong
}

// compare lists what is otherwise about one file.
func (f File) compare(path string) []string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.Absent:
		return nil
	case err != nil:
		return []string{"it is not there"}
	case f.Absent:
		return []string{"it is there, and should not be"}
	}
	var wrong []string
	if mode := fmt.Sprintf("%#o", info.Mode().Perm()); f.Mode != "" && mode != f.Mode {
		wrong = append(wrong, fmt.Sprintf("its mode is %s, want %s", mode, f.Mode))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return append(wrong, "it cannot be read")
	}
	text := string(data)
	if f.Equals != nil && text != *f.Equals {
		wrong = append(wrong, fmt.Sprintf("it has %d bytes, sha256 %s; want %d bytes, sha256 %s",
			len(text), strictjson.Digest(data), len(*f.Equals), strictjson.Digest([]byte(*f.Equals))))
	}
	for _, want := range f.Contains {
		if !strings.Contains(text, want) {
			wrong = append(wrong, fmt.Sprintf("it does not contain %q", want))
		}
	}
	for _, not := range f.Lacks {
		if strings.Contains(text, not) {
			wrong = append(wrong, fmt.Sprintf("it contains %q", not))
		}
	}
	return wrong
}
