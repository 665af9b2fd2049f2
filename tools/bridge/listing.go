package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// maxPages is how many pages of a list are asked for (SPEC B3).
const maxPages = 4

// page is one page of a server's list of tools.
type page struct {
	raw     []byte // the result, compact
	entries []*entry
	next    string // the cursor of the next page; empty at the last
}

// entry is one tool of a list. What its definition says is read when it is first
// wanted.
type entry struct {
	name string
	raw  []byte

	read       bool
	definition tools.Definition
	err        error // a tools.Reason: the definition is refused
}

// define reads the definition in its canonical form, so that the model is told the same
// whether a server has just sent it or the run has kept it.
func (e *entry) define() (tools.Definition, error) {
	if e.read {
		return e.definition, e.err
	}
	e.read = true
	canonical, err := strictjson.Canonical(e.raw)
	if err != nil {
		e.err = tools.DefinitionMalformed
		return e.definition, e.err
	}
	e.definition, e.err = tools.ParseDefinition(canonical)
	return e.definition, e.err
}

// listing is a complete, accepted list: by the server's own names.
type listing map[string]*entry

// list asks the server for its tools, each page within limit, and refuses the list as a
// whole by SPEC B3. Nothing is taken from an earlier list but the reading of a page
// whose bytes are the same.
func (c *connection) list(ctx context.Context, ids *requestIDs, limit time.Duration, most int) (listing, error) {
	all, cursors := listing{}, map[string]bool{}
	var cursor string
	for n := 0; ; n++ {
		p, err := c.page(ctx, ids, limit, n, cursor)
		if err != nil {
			return nil, err
		}
		for _, e := range p.entries {
			if all[e.name] != nil {
				return nil, ReasonListDuplicate
			}
			all[e.name] = e
		}
		cursor = p.next
		switch {
		case len(all) > most:
			return nil, ReasonListTools
		case cursor == "":
			return all, nil
		case cursors[cursor]:
			return nil, ReasonListCursor
		case n+1 == maxPages:
			return nil, ReasonListPages
		}
		cursors[cursor] = true
	}
}

// page asks for page n.
func (c *connection) page(ctx context.Context, ids *requestIDs, limit time.Duration, n int, cursor string) (page, error) {
	var params []param
	if cursor != "" {
		text, err := strictjson.Encode(cursor)
		if err != nil {
			return page{}, ReasonListMalformed
		}
		params = append(params, param{"cursor", text})
	}
	f, _, err := c.request(ctx, limit, ids.next(), "tools/list", params)
	switch {
	case err != nil:
		return page{}, err
	case f.fault != nil:
		return page{}, ReasonListError
	case n < len(c.pages) && bytes.Equal(c.pages[n].raw, f.result):
		return c.pages[n], nil
	}
	p, err := readPage(f.result)
	if err != nil {
		return page{}, err
	}
	c.pages = append(c.pages[:min(n, len(c.pages))], p)
	return p, nil
}

func readPage(raw []byte) (page, error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return page{}, ReasonListMalformed
	}
	p := page{raw: raw}
	var list []json.RawMessage
	for _, m := range members {
		switch m.Name {
		case "resultType":
			if string(m.Value) != complete {
				return page{}, ReasonListType
			}
		case "nextCursor":
			if string(m.Value) != "null" && strictjson.Decode(m.Value, &p.next) != nil {
				return page{}, ReasonListMalformed
			}
		case "tools":
			if strictjson.Decode(m.Value, &list) != nil {
				return page{}, ReasonListMalformed
			}
		}
	}
	if list == nil {
		return page{}, ReasonListMalformed
	}
	for _, tool := range list {
		name, err := tools.NameOf(tool)
		if err != nil {
			return page{}, ReasonListMalformed
		}
		p.entries = append(p.entries, &entry{name: name, raw: tool})
	}
	return p, nil
}

// complete is the only result type, as JSON, of a request that was handled; an absent
// one means the same (SPEC B14).
const complete = `"complete"`
