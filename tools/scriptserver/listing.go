package scriptserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// statusSchema is what a tool declares that answers status, message and data.
const statusSchema = `{"type":"object","properties":{"status":{"type":"string","enum":["ok","rejected","failed","result_unknown"]},` +
	`"message":{"type":"string"},"data":{"type":"object"}},"required":["status","message"],"additionalProperties":false}`

// number stands for the number of a tool of which there are many.
const number = "$N"

// now is what a tool's definition says at the moment; false if the tool is not listed.
func (s *server) now(t Tool, sc scene) (Definition, bool) {
	d, listed := t.Definition, s.holds(t.When, sc)
	if t.Result == resultStatus && d.OutputSchema == nil {
		d.OutputSchema = Value(statusSchema)
	}
	for _, c := range t.Changes {
		if s.holds(c.When, sc) {
			d = c.over(d)
			listed = listed && !c.Gone
		}
	}
	return d, listed
}

// over is the definition with what the change gives.
func (c Change) over(d Definition) Definition {
	if c.Raw != nil {
		return Definition{Name: d.Name, Raw: c.Raw}
	}
	if c.Name != "" {
		d.Name = c.Name
	}
	for _, t := range []struct{ from, to **Text }{{&c.Title, &d.Title}, {&c.Description, &d.Description}} {
		if *t.from != nil {
			*t.to = *t.from
		}
	}
	for _, v := range []struct{ from, to *Value }{
		{&c.InputSchema, &d.InputSchema}, {&c.OutputSchema, &d.OutputSchema}, {&c.Annotations, &d.Annotations}, {&c.Meta, &d.Meta},
	} {
		if *v.from != nil {
			*v.to = *v.from
		}
	}
	if c.Members != nil {
		members := maps.Clone(d.Members)
		if members == nil {
			members = map[string]Value{}
		}
		maps.Copy(members, c.Members)
		d.Members = members
	}
	return d
}

// called is the index of the tool that a call is for, or -1: the first that is listed under that name,
// else the first that has it.
func (s *server) called(name string) int {
	fallback := -1
	for i, t := range s.script.Tools {
		d, listed := s.now(t, scene{read: s.files.read})
		for n := range max(t.Count, 1) {
			if numbered(d.Name, t, n) != name && numbered(t.Name, t, n) != name {
				continue
			}
			if listed {
				return i
			}
			if fallback < 0 {
				fallback = i
			}
		}
	}
	return fallback
}

func numbered(text string, t Tool, n int) string {
	if t.Count == 0 {
		return text
	}
	return strings.ReplaceAll(text, number, strconv.Itoa(n+1))
}

// definitions are what is listed now, in order.
func (s *server) definitions(sc scene) ([][]byte, error) {
	var all [][]byte
	for _, t := range s.script.Tools {
		d, listed := s.now(t, sc)
		if !listed {
			continue
		}
		for n := range max(t.Count, 1) {
			text, err := sc.definition(d, t, n)
			if err != nil {
				return nil, err
			}
			all = append(all, text)
		}
	}
	return all, nil
}

func (s scene) definition(d Definition, t Tool, n int) ([]byte, error) {
	if d.Raw != nil {
		return s.render(d.Raw)
	}
	out := quote([]byte(`{"name":`), []byte(numbered(d.Name, t, n)))
	for _, m := range []struct {
		name string
		text *Text
	}{{"title", d.Title}, {"description", d.Description}} {
		if m.text == nil {
			continue
		}
		text, err := s.render(m.text)
		if err != nil {
			return nil, err
		}
		if t.Count > 0 {
			text = bytes.ReplaceAll(text, []byte(number), strconv.AppendInt(nil, int64(n+1), 10))
		}
		out = quote(append(out, `,"`+m.name+`":`...), text)
	}
	if d.InputSchema == nil {
		d.InputSchema = Value(`{"type":"object"}`)
	}
	type member struct {
		name  string
		value Value
	}
	members := []member{
		{"inputSchema", d.InputSchema}, {"outputSchema", d.OutputSchema}, {"annotations", d.Annotations}, {"_meta", d.Meta},
	}
	for _, name := range slices.Sorted(maps.Keys(d.Members)) {
		members = append(members, member{name, d.Members[name]})
	}
	for _, m := range members {
		if m.value == nil {
			continue
		}
		value, err := s.value(m.value)
		if err != nil {
			return nil, err
		}
		out = append(append(quote(append(out, ','), []byte(m.name)), ':'), value...)
	}
	return append(out, '}'), nil
}

// list answers with one page: the first, or the one after the page that was sent last.
func (s *server) list(m message, sc scene) ([]byte, error) {
	if firstPage(m.params) {
		s.page = 0
	} else if !s.offered(m.params) {
		return failure(m.id, codeParams, "invalid cursor", nil), nil
	}
	all, err := s.definitions(sc)
	if err != nil {
		return nil, err
	}
	size, pages := s.cut(len(all))
	from, to := min(s.page*size, len(all)), min((s.page+1)*size, len(all))
	s.page++
	out := s.complete(m)
	if len(out) > 1 {
		out = append(out, `"ttlMs":0,"cacheScope":"public",`...)
	}
	out = append(append(append(out, `"tools":[`...), bytes.Join(all[from:to], []byte{','})...), ']')
	if s.page < pages {
		out = quote(append(out, `,"nextCursor":`...), []byte(s.cursor(s.page)))
	}
	return success(m.id, append(out, '}')), nil
}

// offered reports whether the cursor is the one that was given last.
func (s *server) offered(params []byte) bool {
	var p struct {
		Cursor string `json:"cursor"`
	}
	return json.Unmarshal(params, &p) == nil && s.page > 0 && p.Cursor == s.cursor(s.page)
}

// cut is how many tools a page has, and how many pages there are.
func (s *server) cut(tools int) (size, pages int) {
	p := s.script.Pages
	if p == nil {
		return tools, 1
	}
	if size = p.Size; size == 0 {
		size = max(tools, 1)
	}
	pages = max((tools+size-1)/size, len(p.Cursors)+1)
	if p.Endless {
		pages = s.page + 2
	}
	return size, pages
}

// cursor is what leads to page n; the first is 0 and has none.
func (s *server) cursor(n int) string {
	if p := s.script.Pages; p != nil && n <= len(p.Cursors) {
		return p.Cursors[n-1]
	}
	return "page-" + strconv.Itoa(n+1)
}
