package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/scenarios/config"
)

// What a proof takes a run to pin is what a run pins, but for the definitions, which
// only a discovery finds.
func TestProve_PinsWhatARunPins(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	first, _, _ := strings.Cut(u.must(exitOK, "journal", "r", "-o", "jsonl").stdout, "\n")
	var entry struct {
		Data agent.Spec `json:"data"`
	}
	if err := json.Unmarshal([]byte(first), &entry); err != nil {
		t.Fatal(err)
	}
	for i := range entry.Data.Tools {
		entry.Data.Tools[i].Definition = ""
	}
	c, err := config.Load(u.path("sallyport.yaml"), config.Options{UserDir: u.path("config/sallyport")})
	if err != nil {
		t.Fatal(err)
	}
	p := pinned(c.Servers, c.Tools, c.Keys, c.Budget)
	if len(p.spec.Tools) == 0 || !slices.Equal(p.spec.Tools, entry.Data.Tools) {
		t.Errorf("a proof takes a run to pin\n%+v\nand a run pins\n%+v", p.spec.Tools, entry.Data.Tools)
	}
	if p.spec.Budget != entry.Data.Budget || len(p.spec.Approvers) != len(entry.Data.Approvers) {
		t.Errorf("budget %+v and %d approvers; a run pins %+v and %d", p.spec.Budget, len(p.spec.Approvers), entry.Data.Budget, len(entry.Data.Approvers))
	}
}

// A proof of many kinds of tools takes minutes. On a terminal it says how far it is, and
// Ctrl-C ends it.
func TestProve_Interrupted(t *testing.T) {
	u := newUser(t)
	u.write("sallyport.yaml", `
servers: {stub: {command: [/bin/false]}}
tools:
  stub__read: {owner: me, risk: read, output: none}
  stub__one: {owner: me, risk: write, output: none, side_effect: a letter, rollback: write again, approval: {approvers: 1}}
  stub__two: {owner: me, risk: destructive, output: none, side_effect: a letter, rollback: write again, approval: {approvers: 3}}
  stub__three: {owner: me, risk: destructive, output: none, side_effect: a letter, rollback: write again, approval: {approvers: 4}}
`)
	s := u.open("prove")
	s.see(" states so far")
	began := time.Now()
	s.enter(ctrlC)
	if code, screen := s.end(); code != int(exitInterrupted) || !strings.Contains(screen, "interrupted\n") || time.Since(began) > 2*time.Second {
		t.Errorf("exit code %d after %s\n%s", code, time.Since(began), screen)
	}
}
