package screen

import (
	"context"
	"fmt"
	"strings"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// journalPage is how many entries are read at once.
const journalPage = 128

// journal is the run's journal: one line for each entry, read when it is shown.
type journal struct {
	ctx     context.Context // of the screen: lines are asked for without one
	session *debug.Session
	detail  func(agent.Entry) string
	width   int

	pages map[int][]agent.Entry // those that were read; some at a time
	upTo  int64                 // the last entry when they were
}

func (j *journal) count() int { return int(j.session.Last().Seq) }

func (j *journal) line(i int) line {
	e, err := j.entry(i)
	if err != nil {
		return line{cut(terminal.Line(fmt.Sprintf("entry %d: %v", i+1, err)), j.width), warning}
	}
	at := j.session.Position().Seq
	if e.Seq == at {
		return line{fit(">"+j.text(e), j.width), lit}
	}
	f := plain
	if e.Kind != agent.EntryEvent {
		f = faint // no step: it moved nothing
	}
	return line{cut(" "+j.text(e), j.width), f}
}

// text is an entry in a line.
func (j *journal) text(e agent.Entry) string {
	what := string(e.Row)
	if e.Kind != agent.EntryEvent {
		what = "(" + string(e.Kind) + ")"
	}
	text := fmt.Sprintf("%4d %s %-17s %-8s %s", e.Seq, e.Time.Local().Format("15:04:05.000"), what, e.Origin, terminal.Line(j.detail(e)))
	return strings.TrimRight(text, " ")
}

// entry reads one, with those around it.
func (j *journal) entry(i int) (agent.Entry, error) {
	last := j.session.Last().Seq
	if last != j.upTo || len(j.pages) > 4 {
		j.pages, j.upTo = map[int][]agent.Entry{}, last
	}
	n := i / journalPage
	page, ok := j.pages[n]
	if !ok {
		from := int64(n*journalPage) + 1
		for e, err := range j.session.Entries(j.ctx, from, min(from+journalPage-1, last)) {
			if err != nil {
				return agent.Entry{}, err
			}
			page = append(page, e)
		}
		j.pages[n] = page
	}
	if i%journalPage >= len(page) {
		return agent.Entry{}, fmt.Errorf("it is not there")
	}
	return page[i%journalPage], nil
}
