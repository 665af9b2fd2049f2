package scriptserver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// The limits of a description.
const (
	maxWait   = 10 * time.Minute // a delay, a pause, or the life of a spawned process
	maxTimes  = 1_000_000_000    // of a frame: its bytes too
	maxCount  = 10_000           // tools made of one, or on a page
	maxCopies = 10_000           // of an answer
	maxExit   = 255
)

// Problem is one thing that is wrong with a description, at a place.
type Problem struct {
	// Path leads to the place: keys from the root of the description, indexes for elements of lists.
	Path []string
	// Message says what is wrong and what to write instead.
	Message string
}

// Check reports everything that is wrong with the description, in its order. One with a problem must not
// be played.
func (s Script) Check() []Problem {
	c := checker{}
	for i, p := range s.Protocols {
		if p == "" {
			c.at("a version is a text, such as "+stateless, "protocols", strconv.Itoa(i))
		}
	}
	c.text(s.Instructions, "instructions")
	c.value(s.Capabilities, "capabilities")
	for i, t := range s.Tools {
		c.below(func() { c.tool(t) }, "tools", strconv.Itoa(i))
	}
	if s.Pages != nil {
		c.within(s.Pages.Size, maxCount, "pages", "size")
	}
	for _, method := range slices.Sorted(maps.Keys(s.Methods)) {
		c.below(func() { c.replies(s.Methods[method]) }, "methods", method)
	}
	for i, start := range s.Starts {
		c.below(func() {
			c.when(start.When)
			c.acts(start.Acts)
		}, "starts", strconv.Itoa(i))
	}
	return c.found
}

// needsFolder reports whether the script cannot be played without a folder.
func (s Script) needsFolder() bool {
	writes := func(acts Acts) bool { return len(acts.Writes) > 0 }
	reply := func(r Reply) bool { return writes(r.Acts) }
	for _, replies := range s.Methods {
		if slices.ContainsFunc(replies, reply) {
			return true
		}
	}
	return slices.ContainsFunc(s.Starts, func(b Start) bool { return writes(b.Acts) }) ||
		slices.ContainsFunc(s.Tools, func(t Tool) bool { return slices.ContainsFunc(t.Replies, reply) })
}

type checker struct {
	path  []string
	found []Problem
}

func (c *checker) at(message string, path ...string) {
	c.found = append(c.found, Problem{Path: append(slices.Clone(c.path), path...), Message: message})
}

func (c *checker) below(check func(), path ...string) {
	outer := c.path
	c.path = append(slices.Clone(outer), path...)
	check()
	c.path = outer
}

func (c *checker) text(t *Text, path ...string) {
	if _, err := (scene{}).render(t); err != nil {
		c.at(err.Error(), path...)
	}
}

func (c *checker) value(v Value, path ...string) {
	if _, err := (scene{}).value(v); err != nil {
		c.at(err.Error(), path...)
	}
}

func (c *checker) within(n, limit int, path ...string) {
	if n < 0 || n > limit {
		c.at(fmt.Sprintf("it is between 1 and %d", limit), path...)
	}
}

func (c *checker) wait(d Duration, path ...string) {
	if d < 0 || time.Duration(d) > maxWait {
		c.at(fmt.Sprintf("it is at most %s", maxWait), path...)
	}
}

func (c *checker) tool(t Tool) {
	c.definition(t.Definition)
	if t.Name == "" {
		c.at("a tool needs a `name`, if only for its calls to be known by")
	}
	if t.Result != "" && t.Result != resultStatus {
		c.at("it is `status`, or left out", "result")
	}
	c.within(t.Count, maxCount, "count")
	c.when(t.When)
	for i, change := range t.Changes {
		c.below(func() {
			c.when(change.When)
			c.definition(change.Definition)
		}, "changes", strconv.Itoa(i))
	}
	c.replies(t.Replies, "replies")
}

func (c *checker) definition(d Definition) {
	c.text(d.Title, "title")
	c.text(d.Description, "description")
	c.value(d.InputSchema, "input_schema")
	c.value(d.OutputSchema, "output_schema")
	c.value(d.Annotations, "annotations")
	c.value(d.Meta, "meta")
	for _, name := range slices.Sorted(maps.Keys(d.Members)) {
		c.value(d.Members[name], "members", name)
	}
	c.text(d.Raw, "raw")
	if d.Raw != nil && (d.Title != nil || d.Description != nil || d.InputSchema != nil || d.OutputSchema != nil ||
		d.Annotations != nil || d.Meta != nil || d.Members != nil) {
		c.at("`raw` is the whole definition: the other members do not stand beside it", "raw")
	}
}

func (c *checker) when(w *When) {
	if w == nil {
		return
	}
	for _, f := range []struct {
		key  string
		file *Text
	}{{"exists", w.Exists}, {"absent", w.Absent}} {
		if f.file != nil {
			c.file(f.file, "when", f.key)
		}
	}
}

// file checks a name that is known already.
func (c *checker) file(t *Text, path ...string) {
	name, err := (scene{}).render(t)
	switch {
	case err != nil:
		c.at(err.Error(), path...)
	case t.fixed() && !filepath.IsLocal(string(name)):
		c.at("a file is named by a relative path without `..`", path...)
	}
}

func (c *checker) replies(replies []Reply, path ...string) {
	for i, r := range replies {
		c.below(func() { c.reply(r) }, append(slices.Clone(path), strconv.Itoa(i))...)
	}
}

func (c *checker) reply(r Reply) {
	for _, name := range slices.Sorted(maps.Keys(r.Arguments)) {
		c.value(r.Arguments[name], "arguments", name)
	}
	c.when(r.When)
	c.within(r.Times, maxTimes, "times")
	c.acts(r.Acts)
	c.frames(r.After, "after")
	c.answer(r)
	c.within(r.Copies, maxCopies, "copies")
	c.within(r.Hold, maxCopies, "hold")
}

func (c *checker) answer(r Reply) {
	c.text(r.Text, "text")
	c.value(r.Structured, "structured")
	c.text(r.Message, "message")
	c.value(r.Data, "data")
	c.value(r.Result, "result")
	if r.Error != nil {
		c.text(r.Error.Message, "error", "message")
		c.value(r.Error.Data, "error", "data")
	}
	c.frames(r.Frames, "frames")
	kinds := r.answers()
	if len(kinds) > 1 {
		c.at(fmt.Sprintf("a reply gives one answer: `%s` and `%s` do not go together", kinds[0], kinds[1]))
	}
	if r.Status == "" && (r.Message != nil || r.Data != nil) {
		c.at("`message` and `data` go with a `status`")
	}
	if r.IsError && !slices.ContainsFunc(kinds, func(k string) bool { return k == "text" || k == "status" }) {
		c.at("it goes with `text`, `structured` or `status`; in a `result` write isError", "is_error")
	}
}

// answers are the kinds of answer that a reply gives; more than one is too many.
func (r Reply) answers() []string {
	var kinds []string
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"text", r.Text != nil || r.Structured != nil},
		{"status", r.Status != ""},
		{"result", r.Result != nil},
		{"error", r.Error != nil},
		{"frames", r.Frames != nil},
		{"silent", r.Silent},
	} {
		if k.given {
			kinds = append(kinds, k.name)
		}
	}
	return kinds
}

func (c *checker) acts(a Acts) {
	c.wait(a.Delay, "delay")
	for i, w := range a.Writes {
		c.below(func() { c.write(w) }, "writes", strconv.Itoa(i))
	}
	if a.Spawn != nil {
		c.wait(a.Spawn.For, "spawn", "for")
	}
	c.frames(a.Stderr, "stderr")
	c.frames(a.Before, "before")
	if a.Exit != nil && (*a.Exit < 0 || *a.Exit > maxExit) {
		c.at(fmt.Sprintf("an exit code is between 0 and %d", maxExit), "exit")
	}
	if a.Exit != nil && a.Deaf {
		c.at("a server that has ended reads no more: remove `deaf`", "deaf")
	}
}

func (c *checker) write(w Write) {
	c.file(&w.File, "file")
	c.text(w.Content, "content")
	switch {
	case w.Remove && (w.Content != nil || w.Append):
		c.at("what is removed gets no content", "remove")
	case !w.Remove && w.Content == nil:
		c.at("a write needs `content`, or `remove: true`")
	}
}

func (c *checker) frames(frames []Frame, path ...string) {
	for i, f := range frames {
		at := append(slices.Clone(path), strconv.Itoa(i))
		c.text(f.Line, append(at, "line")...)
		c.text(f.Raw, append(at, "raw")...)
		if (f.Line == nil) == (f.Raw == nil) {
			c.at("a frame is either `line`, which gets a line feed, or `raw`, which does not", at...)
		}
		c.within(f.Times, maxTimes, append(at, "times")...)
		c.wait(f.Pause, append(at, "pause")...)
		once, err := (scene{}).render(f.text())
		if err == nil && len(once) > 0 && max(f.Times, 1) > maxTimes/len(once) {
			c.at(fmt.Sprintf("it is at most %d bytes", maxTimes), append(at, "times")...)
		}
	}
}

// text is the frame's text, whichever it is.
func (f Frame) text() *Text {
	if f.Line != nil {
		return f.Line
	}
	return f.Raw
}
