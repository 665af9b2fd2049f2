package audit_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
)

// Nothing of a write leaves the machine, everything of the reads beside it does.
func TestWithoutCalls_LeavesOutWhatACallIsMadeOf(t *testing.T) {
	d := begin(t, enginetest.Spec("r"))
	d.node(d.proposes(enginetest.ToolRead))
	d.node(d.checked())
	d.node(d.came(agent.StatusOK, agent.ClassOK))
	d.node(agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK, Message: d.store("what the read told")})
	secret := d.proposes(enginetest.ToolRead, enginetest.ToolWrite)
	d.node(secret)
	d.node(d.checked())
	d.node(d.came(agent.StatusFailed, agent.ClassToolError))
	d.node(agent.Observed{Status: agent.StatusFailed, Class: agent.ClassToolError, Message: d.store("what failed")})
	d.waits()
	edit := d.edit("bob", `{"n":"secret"}`)
	d.outside(edit)
	d.waits()
	d.outside(d.sign("alice"))
	d.node(d.checked())
	d.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Sent: true, Body: d.store("raw secret")}})
	d.node(agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK, Message: d.store("secret told"), Evidence: d.store("secret evidence"), ReadBack: d.store("secret read back")})
	d.answers()
	d.clean()

	bodies, err := audit.WithoutCalls(d.journal(), d.body, enginetest.ToolWrite)
	if err != nil {
		t.Fatal(err)
	}
	for ref, data := range d.bodies {
		text := string(data)
		left := ref == secret.Message || ref == secret.Calls[0].Body || ref == secret.Calls[1].Body ||
			ref == agent.NewBody(enginetest.Arguments).Ref || strings.Contains(text, "secret")
		if _, err := bodies(ref); errors.Is(err, audit.ErrNotIncluded) != left {
			t.Errorf("%q: left out: %t, want %t", text, !left, left)
		}
	}
	report, err := checkFile(d.export(bodies))
	if err != nil || report.Counts.NotIncluded == 0 || report.Counts.Bodies == 0 {
		t.Errorf("%+v, %v", report.Counts, err)
	}
}

func TestWithoutCalls_NeedsTheWholeJournal(t *testing.T) {
	fails := func(yield func(agent.Entry, error) bool) { yield(agent.Entry{}, agent.ErrNoRun) }
	if _, err := audit.WithoutCalls(fails, nil, enginetest.ToolWrite); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("got %v", err)
	}
}
