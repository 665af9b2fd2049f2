package embedded

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sallyport/agent"
)

// listing is what the row of a run repeats of its journal. The journal is what counts: a
// row that says something else was changed by somebody.
type listing struct {
	seq                         int64
	state, reason               string
	ended, ready, held, unknown int64
	tool                        string
	started, updated            int64 // microseconds
	deadline                    sql.NullInt64
	parent                      string
}

// listingColumns are the columns that listing.columns scans.
const listingColumns = "seq, state, reason, ended, ready, held, unknown, tool, started, updated, deadline, parent"

func (l *listing) columns() []any {
	return []any{&l.seq, &l.state, &l.reason, &l.ended, &l.ready, &l.held, &l.unknown, &l.tool, &l.started, &l.updated, &l.deadline, &l.parent}
}

// tell is what the row of a run must say.
func listingOf(run agent.Run, started time.Time) listing {
	deadline := micros(due(run))
	if !deadline.Valid {
		deadline.Int64 = 0 // as it is read back
	}
	s := agent.Summarize(run, started)
	return listing{
		seq: s.Seq, state: string(s.State), reason: s.Reason,
		ended: number(s.State.Final()), ready: number(!run.Rests()), held: number(s.Held), unknown: number(s.Unknown),
		tool: s.Tool, started: started.UnixMicro(), updated: s.Updated.UnixMicro(), deadline: deadline,
		parent: s.Parent,
	}
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// differs says where a row is not what the journal says; empty if nowhere.
func (l *listing) differs(want listing) string {
	switch {
	case l.state != want.state:
		return fmt.Sprintf("it is listed as %q, its journal says %s", l.state, want.state)
	case *l != want:
		return "its line in the list is not what its journal says"
	}
	return ""
}

// broken says what no journal can have led to; empty if nothing.
func (l *listing) broken() string {
	if s := agent.State(l.state); s == agent.StateNone || !s.Open() && !s.Final() {
		return fmt.Sprintf("it is listed in state %q", l.state)
	} else if l.ended != number(s.Final()) {
		return fmt.Sprintf("it is listed in state %s and as ended=%d", s, l.ended)
	}
	return ""
}

// summary is the line in a list.
func (l *listing) summary(id string) agent.Summary {
	s := agent.Summary{
		ID: id, State: agent.State(l.state), Reason: l.reason, Seq: l.seq, Held: l.held != 0, Unknown: l.unknown != 0,
		Tool: l.tool, Started: time.UnixMicro(l.started).UTC(), Updated: time.UnixMicro(l.updated).UTC(),
		Parent: l.parent,
	}
	if l.deadline.Valid {
		s.Deadline = time.UnixMicro(l.deadline.Int64).UTC()
	}
	return s
}

// ends is where the entries of a run begin and end.
type ends struct {
	first, last sql.NullInt64
	hash, bytes sql.RawBytes // of the entry that the row calls its last; until the next row
}

// endsColumns are the columns that ends.columns scans: looked up, not searched for.
const endsColumns = `(SELECT min(e.seq) FROM entries e WHERE e.run = r.num), (SELECT max(e.seq) FROM entries e WHERE e.run = r.num),
	(SELECT e.hash FROM entries e WHERE e.run = r.num AND e.seq = r.seq), (SELECT e.bytes FROM entries e WHERE e.run = r.num AND e.seq = r.seq)`

func (e *ends) columns() []any { return []any{&e.first, &e.last, &e.hash, &e.bytes} }

// broken says where the row and the entries of a run do not agree; empty if they may.
// Whoever reads the entries meets the rest.
func (e *ends) broken(head []byte, said *listing) string {
	switch {
	case !e.first.Valid:
		return "it has no entries"
	case e.first.Int64 != 1:
		return fmt.Sprintf("entry %d: its first must be 1", e.first.Int64)
	case e.last.Int64 > said.seq:
		return fmt.Sprintf("entry %d: it ends with entry %d, and there are more", e.last.Int64, said.seq)
	case e.last.Int64 < said.seq:
		return fmt.Sprintf("entry %d: it is missing, and the last", said.seq)
	case !bytes.Equal(e.hash, head):
		return fmt.Sprintf("entry %d: it is not the one that the run ends with", said.seq)
	}
	var last struct {
		V     int
		Kind  agent.EntryKind
		State agent.State
	}
	switch err := json.Unmarshal(e.bytes, &last); {
	case err == nil && last.V > agent.Version:
		return "" // what a newer version may say of a run is not known here
	case err == nil && last.Kind == agent.EntryEvent && string(last.State) != said.state:
		return fmt.Sprintf("it is listed as %q, its last entry, %d, says %s", said.state, said.seq, last.State)
	}
	return said.broken()
}
