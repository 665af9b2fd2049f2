package main

import (
	"strings"

	"sallyport/agent"
)

// What is told again and again in the kill tests, each time with another death in it.

// What the reports say.
const (
	draftText  = "The lamp was changed on 9 March.\n"
	editedText = "The lamp was changed on 9 March, at noon.\n"
	finalWords = "That is all."
)

// editFile is where the person who edits has the new text.
const editFile = "edited.md"

// The tools that the stories call.
const (
	readTool   = "read_document"
	saveTool   = "save_report"
	settleTool = "settle_report"
)

// act is one command that a person gives.
type act struct {
	args []string
	// cancel: the save is held back where it stands, and the run cancelled meanwhile.
	cancel bool
	// later: from now on the engine's clock is past every deadline of a candidate.
	later bool
}

func does(args ...string) act { return act{args: args} }

// plot is a run with the people around it. What a person does follows from where the
// run is, so that it goes on after a death as it would have gone on.
type plot struct {
	name     string
	commands int      // that it takes where nobody is killed
	saves    bool     // the model saves a report
	two      bool     // two must sign
	dies     []string // orders for the document server
	from     int      // the first of its commands, from 0, in which there is something to kill
	held     string   // the tool that is held back while the Host is killed
	decide   func(agent.Run) act
	want     want
}

// want is how a story may end.
type want struct {
	state agent.State
	text  string // of the report, where there is one
	// uncertain: a read-back decides even if nothing is killed.
	uncertain bool
	nothing   bool   // there is no report
	said      string // what the model is told about the save, where no read-back had to decide
}

const (
	saidSaved   = "The tool has answered."
	saidExpired = "Nobody decided in time. Nothing was written."
	saidApplied = "Its outcome was unknown; a check found that it took effect."
	saidNot     = "Its outcome was unknown; a check found that it did not."
	saidEdited  = "A person changed the arguments; these were used: "
)

func approvesAs(name string) func(agent.Run) act {
	return func(run agent.Run) act {
		return does("approve", "r", "--sha256", run.Call.Candidate.Arguments, "--as", name)
	}
}

// plots are the columns of the matrix.
var plots = []plot{
	{name: "a read", commands: 1, held: readTool, want: want{state: agent.StateCompleted, nothing: true}},
	{
		name: "a granted write", commands: 2, saves: true, held: saveTool, decide: approvesAs("ann"),
		want: want{state: agent.StateCompleted, text: draftText, said: saidSaved},
	},
	{
		name: "two approvals", commands: 3, saves: true, two: true, from: 1, held: saveTool,
		decide: func(run agent.Run) act {
			if len(run.Call.Grants) == 0 {
				return approvesAs("bob")(run)
			}
			return approvesAs("cleo")(run)
		},
		want: want{state: agent.StateCompleted, text: draftText, said: saidSaved},
	},
	{
		name: "an edit", commands: 3, saves: true, from: 1, held: saveTool,
		decide: func(run agent.Run) act {
			if !run.Call.Edited {
				return does("approve", "r", "--edit="+editFile, "--field", "content", "--as", "ann")
			}
			return approvesAs("ann")(run)
		},
		want: want{state: agent.StateCompleted, text: editedText, said: saidEdited},
	},
	{
		name: "an expiry", commands: 2, saves: true, from: 1,
		decide: func(agent.Run) act { return act{args: []string{"resume", "r"}, later: true} },
		want:   want{state: agent.StateCompleted, nothing: true, said: saidExpired},
	},
	{
		name: "found applied", commands: 2, saves: true, from: 1, held: settleTool, dies: []string{saveTool + " " + dieAnswer}, decide: approvesAs("ann"),
		want: want{state: agent.StateCompleted, text: draftText, uncertain: true, said: saidApplied},
	},
	{
		name: "found not applied", commands: 2, saves: true, from: 1, held: settleTool, dies: []string{saveTool + " " + dieAsked}, decide: approvesAs("ann"),
		want: want{state: agent.StateCompleted, nothing: true, uncertain: true, said: saidNot},
	},
	{
		name: "a cancel in flight", commands: 3, saves: true, from: 1,
		decide: func(run agent.Run) act {
			a := approvesAs("ann")(run)
			a.cancel = true
			return a
		},
		want: want{state: agent.StateCancelled, text: draftText, said: saidSaved},
	},
}

// next is what a person does about a run that is where it is; saved says
// whether the report is there.
func (p *plot) next(run agent.Run, saved bool) act {
	switch {
	case run.Seq == 0:
		return does("run", "task.yaml", "--id", "r", "--decide", "wait")
	case run.State == agent.StateAwaitingApproval && p.decide != nil:
		return p.decide(run)
	case run.State == agent.StateNeedsVerification && run.Open == nil:
		return p.attest(saved)
	}
	return act{args: []string{"resume", "r"}, cancel: p.want.state == agent.StateCancelled}
}

// attest is what is signed where no read-back decides: somebody has looked.
func (p *plot) attest(saved bool) act {
	verdict := "--not-applied"
	if saved {
		verdict = "--applied"
	}
	return does("verify", "r", verdict, "--as", "ann")
}

// script is the model's part.
func (p *plot) script() string {
	lines := []string{"task: Save what the notes say.", "model:", "  script:",
		"    - call: {tool: docs__read_document, args: {filename: notes.md}}"}
	if p.saves {
		lines = append(lines, "    - call: {tool: docs__save_report, arguments: "+yamlText(saveArgs(draftText))+"}")
	}
	return strings.Join(append(lines, "    - say: "+finalWords), "\n") + "\n"
}
