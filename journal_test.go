package sallyport_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// eventRow is a line of the table of events in docs/journal.md.
type eventRow struct {
	event   string
	origins []string
	rows    []string
}

var (
	eventLine = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z, ]+) \\| [^|]+ \\| ((?:`[a-z_]+`(?:, )?)+) \\|$")
	word      = regexp.MustCompile("[a-z_]+")
	steps     = regexp.MustCompile(`(?m)^  ([a-z_]+) +([a-z_]+) → `)
)

func eventTable(t *testing.T) map[string]eventRow {
	t.Helper()
	table := map[string]eventRow{}
	for _, m := range eventLine.FindAllStringSubmatch(string(read(t, "docs/journal.md")), -1) {
		table[m[1]] = eventRow{m[1], word.FindAllString(m[2], -1), word.FindAllString(m[3], -1)}
	}
	return table
}

// Every event of the code is in the table, with rows that its origins may cause; every
// row belongs to an event.
func TestJournalPage_ListsEveryEventBesideItsRows(t *testing.T) {
	page := eventTable(t)
	caused := map[string]bool{}
	for _, row := range page {
		for _, name := range row.rows {
			caused[name] = true
			if !possible(name, row.origins) {
				t.Errorf("docs/journal.md: %s cannot become %s: not a row, or not for %v", row.event, name, row.origins)
			}
		}
	}
	for _, tr := range agent.Table() {
		if !caused[string(tr.Row)] {
			t.Errorf("docs/journal.md: no event becomes %s", tr.Row)
		}
	}
	for _, m := range steps.FindAllStringSubmatch(string(read(t, "agent/testdata/step.txt")), -1) {
		if !slices.Contains(page[m[1]].rows, m[2]) {
			t.Errorf("docs/journal.md: %s may become %s, as agent/testdata/step.txt shows", m[1], m[2])
		}
	}
}

func possible(name string, origins []string) bool {
	return slices.ContainsFunc(agent.Table(), func(tr agent.Transition) bool {
		return string(tr.Row) == name && slices.ContainsFunc(tr.By, func(o agent.Origin) bool {
			return slices.Contains(origins, string(o))
		})
	})
}

// Every field that an entry, an event or a candidate is stored with is described.
func TestJournalPage_DescribesEveryField(t *testing.T) {
	page := string(read(t, "docs/journal.md"))
	for _, v := range []any{
		agent.Entry{}, agent.Spec{}, agent.Turned{}, agent.TurnRefused{}, agent.Unreached{}, agent.Checked{},
		agent.Returned{}, agent.Observed{}, agent.Verified{}, agent.Approve{}, agent.Refuse{}, agent.Edit{},
		agent.Attest{}, agent.Cancel{}, agent.Extend{}, agent.Substitute{}, grant.Claims{}, agent.BodyRef{},
	} {
		for _, name := range fields(reflect.TypeOf(v)) {
			if !regexp.MustCompile(`[{ ]` + "`?" + name + "[`,}]").MatchString(page) {
				t.Errorf("docs/journal.md does not describe the field %s of %T", name, v)
			}
		}
	}
}

// fields are the JSON names in a type, and in what it holds.
func fields(typ reflect.Type) []string {
	var out []string
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() == "time" {
		return nil
	}
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, name)
		}
		if f.IsExported() {
			out = append(out, fields(f.Type)...)
		}
	}
	return out
}

// The table must hold every kind that the code can read, and no other.
func TestJournalPage_KnowsTheEventsOfTheCode(t *testing.T) {
	page := eventTable(t)
	kinds := map[string]bool{}
	for _, m := range steps.FindAllStringSubmatch(string(read(t, "agent/testdata/step.txt")), -1) {
		kinds[m[1]] = true
	}
	declared := regexp.MustCompile(`Kind[A-Za-z]+ +Kind = "([a-z_]+)"`)
	for _, m := range declared.FindAllStringSubmatch(string(read(t, "agent/event.go")), -1) {
		kinds[m[1]] = true
	}
	for kind := range kinds {
		if _, ok := page[kind]; !ok {
			t.Errorf("docs/journal.md does not list the event %s", kind)
		}
	}
	for kind := range page {
		if !kinds[kind] {
			t.Errorf("docs/journal.md lists %s, which is no event", kind)
		}
	}
}
