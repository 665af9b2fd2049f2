package main

import (
	"path/filepath"
	"strings"

	"sallyport/agent"
	"sallyport/nodes/llm/chat"
)

// finals says, of each reason for which an endpoint is not asked again, what it means
// and the one thing to change.
var finals = map[string]struct{ means, change string }{
	chat.ReasonAuth:        {"The endpoint did not take the key, or the key may not use this model.", "Mend the key (docs/models.md says which one goes there)"},
	chat.ReasonQuota:       {"The account at the endpoint is used up.", "Fill it up, or use the key of another"},
	chat.ReasonNotFound:    {"The endpoint has no such model, or base_url leads to something else.", "Name a model that it has, with --model NAME; a mended base_url is for a new run"},
	chat.ReasonRefused:     {"The endpoint refuses the request.", "Name another model, with --model NAME; another profile is for a new run"},
	chat.ReasonTooLong:     {"The request is longer than the model's context.", "Name a model with a longer one, with --model NAME; a smaller `context` is for a new run"},
	chat.ReasonFiltered:    {"A content filter of the provider withheld the request.", "Name another model, with --model NAME"},
	chat.ReasonRedirected:  {"The endpoint names another address, and is not followed there.", "Name a model of this endpoint, with --model NAME; a mended base_url is for a new run"},
	chat.ReasonKeyRepeated: {"The endpoint repeated the key that it was sent, and nothing of that is kept.", "Revoke the key, and set another; ask an endpoint that you trust"},
}

// reportUnreached says why a run whose model gave no turn has ended, and how to go on.
func (d *desk) reportUnreached(run agent.Run) {
	reason := strings.TrimPrefix(run.Reason, modelReason)
	fork := d.command("fork", run.ID, "--serve")
	f, final := finals[reason]
	if !final {
		d.app.say("Once the model gives turns again, go on with a fork of it, in which nothing is sent again; see also: sallyport doctor\n  %s", fork)
		return
	}
	d.app.say("%s", f.means)
	if log := d.logged(); log != "" {
		d.app.say("What the endpoint said, without secrets, is in %s", log)
	}
	d.app.say("%s. Then go on with a fork of it, in which nothing is sent again; see also: sallyport doctor\n  %s", f.change, fork)
}

// modelReason begins the reason of a run that ended because its model gave no turn.
const modelReason = "model:"

// logged is the file that the run's log is in; empty if it is none.
func (d *desk) logged() string {
	switch {
	case d.app.logFile == "-" || d.host == nil && d.app.logFile == "":
		return ""
	case d.app.logFile != "":
		return quoted(d.app.logFile)
	}
	return quoted(filepath.Join(d.host.StateDir, logFolder, d.run+".jsonl"))
}
