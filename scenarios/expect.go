package scenarios

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/agent"
	"sallyport/scenarios/config"
)

// Expect is what must hold when a scenario's run rests. What is absent is not looked
// at, except for what always must hold: an audit of the journal finds nothing broken,
// the model was sent no grant, key, scope or folder of the stage, all decisions of the
// scenario were asked for, and each delivery got its verdict.
type Expect struct {
	// State is where the run ends or waits.
	State agent.State `yaml:"state"`
	// Reason is why it ended, or what holds it, such as budget:tool_calls.
	Reason string `yaml:"reason"`
	// Held is whether the run is paused.
	Held *bool `yaml:"held"`
	// Begin says that no run is begun.
	Begin *ExpectBegin `yaml:"begin"`
	// Path are the states that the run passes, in order, each once in a row.
	Path []agent.State `yaml:"path"`
	// Rows are all rows of the transition table that the run takes, in order.
	Rows []agent.Row `yaml:"rows"`
	// Calls are all calls of the run, in order.
	Calls []ExpectCall `yaml:"calls"`
	// NotSent names tools of which no request may have left the Host.
	NotSent []string `yaml:"not_sent"`
	// NoCall names tools that no call of the run may be of.
	NoCall []string `yaml:"no_call"`
	// Files maps names of the stage to what they must be.
	Files map[string]File `yaml:"files"`
	// Only maps folders of the stage to all that may lie in them.
	Only map[string][]string `yaml:"only"`
	// Events must be in the journal, in this order, with others between them.
	Events []ExpectEvent `yaml:"events"`
	// NoEvents must not be in the journal.
	NoEvents []ExpectEvent `yaml:"no_events"`
	// Counts says how often rows are in the journal.
	Counts map[agent.Row]Range `yaml:"counts"`
	// Used is what the run has spent.
	Used *ExpectUsed `yaml:"used"`
	// Answer is the model's last message.
	Answer *TextCheck `yaml:"answer"`
	// Model is what the model was sent.
	Model *ExpectModel `yaml:"model"`
	// Shown is what a person would see of each candidate, all of them in one text.
	Shown *TextCheck `yaml:"shown"`
	// Servers are what scripted servers were sent and did, by prefix.
	Servers map[string]ExpectServer `yaml:"servers"`
	// Quarantined maps tools that were not offered to words of the reason.
	Quarantined map[string]Words `yaml:"quarantined"`
	// Findings are all that the audit found open, and that breaks no promise.
	Findings []string `yaml:"findings"`
	// Golden is a file of the scenario's folder that holds the journal, normalised.
	Golden string `yaml:"golden"`
}

// ExpectBegin says that no run is begun: configuration or discovery refuse.
type ExpectBegin struct {
	Refused Texts `yaml:"refused" check:"required"` // words of the error
}

// File is what a file of the stage must be.
type File struct {
	TextCheck
	SHA256    string `yaml:"sha256"`    // of its whole content
	Absent    bool   `yaml:"absent"`    // there is no such file
	Unchanged bool   `yaml:"unchanged"` // it is as it was put on the stage
	Mode      string `yaml:"mode"`      // permissions, such as "0600"
	Size      *Range `yaml:"size"`      // in bytes
}

// TextCheck is what a text must be.
type TextCheck struct {
	Equals   *string `yaml:"equals"`   // the whole text
	Contains Texts   `yaml:"contains"` // each must be in it
	Lacks    Texts   `yaml:"lacks"`    // none may be in it
}

// UnmarshalConfig reads a text, which must be contained, or a mapping.
func (c *TextCheck) UnmarshalConfig(n config.Node) error {
	if text, ok := n.Text(); ok {
		if text == "" {
			return n.Problem(`write a word of it, or {equals: ""} if there is to be none`, "every text contains this one")
		}
		*c = TextCheck{Contains: Texts{text}}
		return nil
	}
	type plain TextCheck
	var p plain
	if err := n.Decode(&p); err != nil {
		return err
	}
	*c = TextCheck(p)
	if c.Equals == nil && c.Contains == nil && c.Lacks == nil {
		return n.Problem("add equals, contains or lacks, or remove the key", "nothing is expected")
	}
	return nil
}

// UnmarshalConfig reads a mapping: a file's keys and a text's are one.
func (f *File) UnmarshalConfig(n config.Node) error {
	if _, ok := n.Text(); ok {
		return n.Problem("write {equals: TEXT}, or {contains: TEXT}", "this is a text; it must be a mapping")
	}
	type text TextCheck
	var p struct {
		text
		SHA256    string `yaml:"sha256"`
		Absent    bool   `yaml:"absent"`
		Unchanged bool   `yaml:"unchanged"`
		Mode      string `yaml:"mode"`
		Size      *Range `yaml:"size"`
	}
	if err := n.Decode(&p); err != nil {
		return err
	}
	*f = File{TextCheck(p.text), p.SHA256, p.Absent, p.Unchanged, p.Mode, p.Size}
	return nil
}

// Texts is one text or a list of them.
type Texts []string

// UnmarshalConfig reads both forms.
func (x *Texts) UnmarshalConfig(n config.Node) error {
	if one, ok := n.Text(); ok {
		*x = Texts{one}
	} else if err := n.Decode((*[]string)(x)); err != nil {
		return err
	}
	if len(*x) == 0 || slices.Contains(*x, "") {
		return n.Problem("write a text, or remove the key", "an empty text is in every text, and says nothing")
	}
	return nil
}

// Words is [Texts] where one empty text stands for any.
type Words []string

// UnmarshalConfig reads both forms.
func (w *Words) UnmarshalConfig(n config.Node) error {
	if one, ok := n.Text(); ok && one == "" {
		*w = Words{}
		return nil
	}
	return (*Texts)(w).UnmarshalConfig(n)
}

// Range is a number or what lies between two, such as 3, "2-5", "-5" or "2-".
type Range struct {
	Least, Most int64
}

// maxNumber is the end of an open range.
const maxNumber = 1<<62 - 1

var rangeText = regexp.MustCompile(`^([0-9]{0,18})-([0-9]{0,18})$`)

// UnmarshalConfig reads all forms.
func (r *Range) UnmarshalConfig(n config.Node) error {
	if text, ok := n.Text(); ok {
		m := rangeText.FindStringSubmatch(text)
		if m == nil {
			return n.Problem(`write a number, or a range such as "2-5", "-5" or "2-"`, "%q is no range", text)
		}
		*r = Range{0, maxNumber}
		if m[1] != "" {
			r.Least, _ = strconv.ParseInt(m[1], 10, 64) // at most 18 digits
		}
		if m[2] != "" {
			r.Most, _ = strconv.ParseInt(m[2], 10, 64)
		}
		if r.Least > r.Most {
			return n.Problem("write the smaller number first", "nothing lies in the range %q", text)
		}
		return nil
	}
	var one int64
	if err := n.Decode(&one); err != nil {
		return err
	}
	*r = Range{one, one}
	return nil
}

// Holds reports whether a number lies in the range.
func (r Range) Holds(n int64) bool { return r.Least <= n && n <= r.Most }

// String is the range as it is written.
func (r Range) String() string {
	switch {
	case r.Least == r.Most:
		return strconv.FormatInt(r.Least, 10)
	case r.Most == maxNumber:
		return fmt.Sprintf("%d-", r.Least)
	case r.Least == 0:
		return fmt.Sprintf("-%d", r.Most)
	}
	return fmt.Sprintf("%d-%d", r.Least, r.Most)
}

// ExpectCall is what must have become of one call.
type ExpectCall struct {
	Tool      string       `yaml:"tool"` // empty: one that the run does not have
	Status    agent.Status `yaml:"status"`
	Class     agent.Class  `yaml:"class"`
	Reason    string       `yaml:"reason"`
	Sent      *bool        `yaml:"sent"`      // whether a request left the Host
	Args      *Arguments   `yaml:"args"`      // exactly these, whatever their order
	Approvers []string     `yaml:"approvers"` // who signed
}

// ExpectEvent is an entry of the journal. What is absent may be anything.
type ExpectEvent struct {
	Row    agent.Row       `yaml:"row"`
	Event  agent.Kind      `yaml:"event"`
	Kind   agent.EntryKind `yaml:"kind"`
	Origin agent.Origin    `yaml:"origin"`
	Actor  string          `yaml:"actor"`
	State  agent.State     `yaml:"state"`
	Code   string          `yaml:"code"`
	Reason string          `yaml:"reason"`
	Status agent.Status    `yaml:"status"`
}

// UnmarshalConfig reads a row as a text, or a mapping.
func (e *ExpectEvent) UnmarshalConfig(n config.Node) error {
	if text, ok := n.Text(); ok {
		*e = ExpectEvent{Row: agent.Row(text)}
	} else {
		type plain ExpectEvent
		var p plain
		if err := n.Decode(&p); err != nil {
			return err
		}
		*e = ExpectEvent(p)
	}
	switch {
	case *e == ExpectEvent{}:
		return n.Problem("write a row of the table, or a mapping", "every entry is such an event")
	case e.Row != "" && !known(e.Row, rows()...):
		return unknownWord(string(e.Row), "row of the table", rows())
	case e.Event != "" && !known(e.Event, agent.Kinds()...):
		return unknownWord(string(e.Event), "event", agent.Kinds())
	case e.Kind != "" && !known(e.Kind, kinds...):
		return unknownWord(string(e.Kind), "kind of an entry", kinds)
	case e.Origin != "" && !known(e.Origin, origins...):
		return unknownWord(string(e.Origin), "origin", origins)
	case e.State != "" && !known(e.State, agent.States()...):
		return unknownWord(string(e.State), "state", agent.States())
	case e.Status != "" && !known(e.Status, statuses...):
		return unknownWord(string(e.Status), "status", statuses)
	case e.Code != "" && !known(e.Code, codes...):
		return unknownWord(e.Code, "code of a refusal", codes)
	}
	return nil
}

var (
	kinds   = []agent.EntryKind{agent.EntryEvent, agent.EntryAttempt, agent.EntryNoted, agent.EntryErased}
	origins = []agent.Origin{agent.OriginModel, agent.OriginRuntime, agent.OriginClock, agent.OriginApprover, agent.OriginOperator}
)

// ExpectUsed is what a run has spent.
type ExpectUsed struct {
	Calls  *Range `yaml:"calls"`
	Turns  *Range `yaml:"turns"`
	Tokens *Range `yaml:"tokens"`
}

// ExpectModel is what the model was sent, over all requests.
type ExpectModel struct {
	Requests *Range   `yaml:"requests"` // how often it was asked
	Contains Texts    `yaml:"contains"` // each is in one of the requests
	Lacks    Texts    `yaml:"lacks"`    // none is in any
	Tools    []string `yaml:"tools"`    // that it was offered, in order, each time
}

// ExpectServer is what a scripted server was sent, and what it did.
type ExpectServer struct {
	Starts   *Range                 `yaml:"starts"`   // how often it was started
	Methods  map[string]Range       `yaml:"methods"`  // how often each came
	Calls    map[string]Range       `yaml:"calls"`    // how often each of its tools was called
	Args     map[string][]Arguments `yaml:"args"`     // of each call of a tool, in order
	Contains Texts                  `yaml:"contains"` // each is in something that it was sent
	Lacks    Texts                  `yaml:"lacks"`    // none is
	Files    map[string]File        `yaml:"files"`    // that it wrote
}

// check lists the words of an expectation that mean nothing.
func (e *Expect) check(f *config.File) []config.Diagnostic {
	var found []config.Diagnostic
	wrong := func(remedy, message string, path ...string) {
		found = append(found, f.Problem(remedy, message, append([]string{"expect"}, path...)...))
	}
	say := func(err error, path ...string) { wrong("", err.Error(), path...) }
	for _, path := range e.empty() {
		wrong("say what is expected, or remove the key", "nothing is expected", path...)
	}
	if e.State != "" && !known(e.State, agent.States()...) {
		say(unknownWord(string(e.State), "state", agent.States()), "state")
	}
	for i, s := range e.Path {
		if !known(s, agent.States()...) {
			say(unknownWord(string(s), "state", agent.States()), "path", strconv.Itoa(i))
		}
	}
	for i, r := range e.Rows {
		if !known(r, rows()...) {
			say(unknownWord(string(r), "row of the table", rows()), "rows", strconv.Itoa(i))
		}
	}
	for r := range e.Counts {
		if !known(r, rows()...) {
			say(unknownWord(string(r), "row of the table", rows()), "counts", string(r))
		}
	}
	for i, c := range e.Calls {
		at := []string{"calls", strconv.Itoa(i)}
		if c.Status != "" && !known(c.Status, statuses...) {
			say(unknownWord(string(c.Status), "status", statuses), append(at, "status")...)
		}
		if c.Class != "" && !known(c.Class, classes...) {
			say(unknownWord(string(c.Class), "class", classes), append(at, "class")...)
		}
	}
	for name, file := range e.Files {
		if err := checkStaged(name); err != nil {
			wrong("write sources/NAME, reports/NAME or outside/NAME", err.Error(), "files", name)
		}
		if message, remedy := file.mistake(); message != "" {
			wrong(remedy, message, "files", name)
		}
	}
	for folder := range e.Only {
		if folder != outside && checkStaged(folder) != nil {
			wrong("write sources, reports or outside", "this is no folder of the stage", "only", folder)
		}
	}
	if e.Golden != "" && filepath.Base(e.Golden) != e.Golden {
		wrong("put the file beside the scenario, and name it alone", "a golden journal lies in the scenario's own folder", "golden")
	}
	if e.Begin != nil && (e.State != "" || e.Calls != nil || e.Path != nil || e.Rows != nil) {
		wrong("remove begin, or what is said of the run", "a run that does not begin has no state and no calls", "begin")
	}
	return found
}

// empty lists the keys that are there and expect nothing: they would always hold.
func (e *Expect) empty() [][]string {
	var paths [][]string
	add := func(empty bool, path ...string) {
		if empty {
			paths = append(paths, path)
		}
	}
	add(e.NotSent != nil && len(e.NotSent) == 0, "not_sent")
	add(e.NoCall != nil && len(e.NoCall) == 0, "no_call")
	add(e.Files != nil && len(e.Files) == 0, "files")
	add(e.Only != nil && len(e.Only) == 0, "only")
	add(e.Events != nil && len(e.Events) == 0, "events")
	add(e.NoEvents != nil && len(e.NoEvents) == 0, "no_events")
	add(e.Counts != nil && len(e.Counts) == 0, "counts")
	add(e.Quarantined != nil && len(e.Quarantined) == 0, "quarantined")
	add(e.Servers != nil && len(e.Servers) == 0, "servers")
	add(e.Used != nil && *e.Used == ExpectUsed{}, "used")
	if w := e.Model; w != nil {
		add(w.Requests == nil && w.Contains == nil && w.Lacks == nil && w.Tools == nil, "model")
	}
	for _, prefix := range slices.Sorted(maps.Keys(e.Servers)) {
		s := e.Servers[prefix]
		add(s.Starts == nil && s.Contains == nil && s.Lacks == nil && len(s.Methods)+len(s.Calls)+len(s.Args)+len(s.Files) == 0, "servers", prefix)
	}
	return paths
}

// mistake says what is wrong with what is expected of a file.
func (f File) mistake() (message, remedy string) {
	content := f.Equals != nil || f.Contains != nil || f.Lacks != nil || f.SHA256 != "" || f.Mode != "" || f.Size != nil
	switch {
	case f.Absent && (content || f.Unchanged):
		return "a file that is absent has no content and no mode", "remove absent, or the other keys"
	case f.Mode != "" && !fileMode.MatchString(f.Mode):
		return fmt.Sprintf("%q is no mode", f.Mode), `write four digits in quotes, such as "0600"`
	case f.SHA256 != "" && !digest.MatchString(f.SHA256):
		return "this is no SHA-256", "write 64 digits of 0-9 and a-f"
	}
	return "", ""
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// fits lists the names of an expectation that the configuration does not have: what
// cannot happen would otherwise always hold.
func (e *Expect) fits(f *config.File, s *Scenario) []config.Diagnostic {
	var found []config.Diagnostic
	var names, prefixes []string
	for _, c := range s.Config.Tools {
		names = append(names, c.Name)
	}
	for _, srv := range s.scripts {
		prefixes = append(prefixes, srv.prefix)
	}
	tool := func(name string, path ...string) {
		if slices.Contains(names, name) {
			return
		}
		remedy := "contracts are " + strings.Join(names, ", ")
		if near := config.Nearest(name, names); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		found = append(found, f.Problem(remedy, fmt.Sprintf("there is no contract for %q", name), append([]string{"expect"}, path...)...))
	}
	for i, name := range e.NotSent {
		tool(name, "not_sent", strconv.Itoa(i))
	}
	for i, name := range e.NoCall {
		tool(name, "no_call", strconv.Itoa(i))
	}
	for name := range e.Quarantined {
		tool(name, "quarantined", name)
	}
	for prefix, server := range e.Servers {
		if i := slices.Index(prefixes, prefix); i >= 0 {
			found = append(found, server.fits(f, s.scripts[i])...)
		} else {
			found = append(found, f.Problem("name a server that has a script", "only what a scripted server was sent is known", "expect", "servers", prefix))
		}
	}
	if e.Golden != "" {
		if err := goldenFile(filepath.Join(filepath.Dir(s.File), e.Golden)); err != nil {
			found = append(found, f.Problem("name a new file, such as "+s.base()+".golden: --update writes it", err.Error(), "expect", "golden"))
		}
	}
	for name, file := range e.Files {
		if _, there := s.Files[name]; file.Unchanged && !there {
			found = append(found, f.Problem("name a file of the stage", "only what was put on the stage can be unchanged", "expect", "files", name))
		}
	}
	return found
}

// fits lists the tools that a script does not have. One of many made alike, or of a list
// of its own, is any.
func (e ExpectServer) fits(f *config.File, s serverScript) []config.Diagnostic {
	var names []string
	if _, own := s.script.Methods["tools/list"]; own {
		return nil
	}
	for _, t := range s.script.Tools {
		if t.Count > 0 {
			return nil
		}
		names = append(names, t.Name)
	}
	var found []config.Diagnostic
	tool := func(key, name string) {
		if slices.Contains(names, name) {
			return
		}
		remedy := "its tools are " + strings.Join(names, ", ")
		if near := config.Nearest(name, names); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		found = append(found, f.Problem(remedy, fmt.Sprintf("the server has no tool %q", name), "expect", "servers", s.prefix, key, name))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Calls)) {
		tool("calls", name)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Args)) {
		tool("args", name)
	}
	return found
}
