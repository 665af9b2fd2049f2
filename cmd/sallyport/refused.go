package main

import (
	"context"

	"sallyport/agent"
	"sallyport/scenarios"
)

// lastTurns is how many of the last turns are looked at where a run has used them up.
const lastTurns = 6

// refusals says what to do about turns that were refused again and again, by the reason.
var refusals = map[string]string{
	"unfinished":   "the endpoint ends its turns without saying that they are complete: see sallyport doctor --live, or go on without --stream",
	"cut_off":      "the model comes to no end within its max_tokens: a higher one is for a new run; or name another model, with fork --model NAME",
	"duplicate_id": "the endpoint gives several calls of a turn one id: see sallyport doctor --live, or name another model, with fork --model NAME",
}

// reportRefused says, of a run that has used up its turns, that most of the last were
// refused for one reason.
func (d *desk) reportRefused(ctx context.Context, run agent.Run) {
	if d.host == nil {
		return
	}
	_, entries, err := scenarios.Load(ctx, d.host.Engine, run.ID)
	if err != nil {
		return // how it ended is said all the same
	}
	reason, times, of := mostlyRefused(entries)
	if 2*times <= of {
		return
	}
	hint, known := refusals[reason]
	if !known {
		hint = "see sallyport doctor --live"
	}
	d.app.say("Of its last %d turns %d were refused as %s: %s", of, times, reason, hint)
}

// mostlyRefused is the reason for which most of the last turns were refused, how many of
// them, and how many there are.
func mostlyRefused(entries []agent.Entry) (reason string, times, of int) {
	count := map[string]int{}
	for i := len(entries) - 1; i >= 0 && of < lastTurns; i-- {
		p, err := entries[i].Payload()
		if err != nil || entries[i].Kind != agent.EntryEvent {
			continue
		}
		switch p := p.(type) {
		case agent.Turned:
			of++
		case agent.TurnRefused:
			of++
			if count[p.Reason]++; count[p.Reason] > times {
				reason, times = p.Reason, count[p.Reason]
			}
		}
	}
	return reason, times, of
}
