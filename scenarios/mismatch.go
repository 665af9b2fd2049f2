package scenarios

import (
	"fmt"
	"strings"

	"sallyport/scenarios/config"
)

// Mismatch is one thing that is otherwise than expected.
type Mismatch struct {
	// Path leads to the expectation, such as expect.calls.1.status; or names what always
	// is expected, such as audit.
	Path string `json:"path"`
	Want string `json:"want"`
	Got  string `json:"got"`
	// File and Line are where the expectation stands; 0 if it stands nowhere.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String is the mismatch in one line.
func (m Mismatch) String() string {
	text := strings.TrimPrefix(m.Path, "expect.") + ": "
	switch {
	case m.Want == "":
		return text + "got " + short(m.Got)
	case m.Got == "":
		return text + "want " + short(m.Want)
	}
	return text + "got " + short(m.Got) + ", want " + short(m.Want)
}

// short is a text for one line.
func short(text string) string {
	const most = 200
	if len(text) > most {
		cut := strings.ToValidUTF8(text[:most], "")
		return fmt.Sprintf("%q… (%d bytes)", cut, len(text))
	}
	return fmt.Sprintf("%q", text)
}

// mismatches collects what is otherwise, with the places of what was expected.
type mismatches struct {
	file *config.File
	list []Mismatch
}

// at adds a mismatch of the expectation at a path.
func (m *mismatches) at(want, got string, path ...string) {
	out := Mismatch{Path: strings.Join(path, "."), Want: want, Got: got}
	if m.file != nil {
		in, place := m.file.Place(path...)
		if place.Line > 0 {
			out.File, out.Line = in.Name(), place.Line
		}
	}
	m.list = append(m.list, out)
}

// differs adds a mismatch if two values differ.
func differs[T comparable](m *mismatches, want, got T, path ...string) {
	if want != got {
		m.at(fmt.Sprint(want), fmt.Sprint(got), path...)
	}
}

// given is differs where nothing is wanted if want is the zero value.
func given[T comparable](m *mismatches, want, got T, path ...string) {
	var none T
	if want != none {
		differs(m, want, got, path...)
	}
}

// within adds a mismatch if a number is not in a range.
func (m *mismatches) within(want *Range, got int64, path ...string) {
	if want != nil && !want.Holds(got) {
		m.at(want.String(), fmt.Sprint(got), path...)
	}
}

// text holds a text against what it must be.
func (m *mismatches) text(want TextCheck, got string, path ...string) {
	below := func(step ...string) []string { return append(path[:len(path):len(path)], step...) }
	if want.Equals != nil && got != *want.Equals {
		m.at(*want.Equals, got, below("equals")...)
	}
	for i, w := range want.Contains {
		if !strings.Contains(got, w) {
			m.at("a text that contains "+fmt.Sprintf("%q", w), got, below("contains", fmt.Sprint(i))...)
		}
	}
	for i, w := range want.Lacks {
		if strings.Contains(got, w) {
			m.at("a text without "+fmt.Sprintf("%q", w), got, below("lacks", fmt.Sprint(i))...)
		}
	}
}
