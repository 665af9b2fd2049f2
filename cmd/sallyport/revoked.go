package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools/grant"
)

// door refuses, at the state directory dir, what the user's configuration of today no
// longer allows: see [embedded.Config]. A run pins the keys that it takes; this is how
// one of them is taken away again. It reads the configuration at every decision, so
// that a revocation is in force at once in whatever serves the run.
//
// Keys that lie in the state directory itself were made for one demo or scenario: they
// are in no configuration, and hold as long as they lie there.
func door(dir string, now func() time.Time) func(agent.Run, agent.Decision) *agent.Refusal {
	return func(run agent.Run, d agent.Decision) *agent.Refusal {
		by, signed := signerOf(run, d)
		if !signed {
			return nil // an operator's word, or a signature that Step refuses
		}
		keys := []grant.PublicKey{by}
		if _, approves := d.(agent.Approve); approves {
			keys = append(keys, endorsers(run)...) // a first signature does not outlive its key
		}
		for _, k := range keys {
			if why := revoked(run, k, dir, now(), asksFor(run, d)); why != "" {
				return &agent.Refusal{Code: agent.CodeKey, Message: why}
			}
		}
		return nil
	}
}

// asksFor is the role that a decision asks of who signs it; empty if any approver may.
func asksFor(run agent.Run, d agent.Decision) string {
	switch d.(type) {
	case agent.Approve, agent.Edit:
		if run.Call != nil {
			tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
			return tool.Role
		}
	case agent.Refuse, agent.Attest, agent.Cancel, agent.Pause, agent.Resume, agent.StepOnce, agent.Extend, agent.Substitute:
	}
	return ""
}

// signerOf is the pinned key that signed a decision.
func signerOf(run agent.Run, d agent.Decision) (by grant.PublicKey, signed bool) {
	keys := pinnedKeys(run)
	var err error
	switch d := d.(type) {
	case agent.Approve:
		_, by, err = keys.OpenGrant(d.Grant)
	case agent.Refuse:
		if d.Signed == "" {
			return by, false
		}
		_, by, err = keys.OpenRefusal(d.Signed)
	case agent.Edit:
		_, by, err = keys.OpenEdit(d.Signed)
	case agent.Attest:
		_, by, err = keys.OpenStatement(d.Signed)
	case agent.Cancel, agent.Pause, agent.Resume, agent.StepOnce, agent.Extend, agent.Substitute:
		return by, false
	}
	return by, err == nil
}

func pinnedKeys(run agent.Run) grant.Keys {
	var keys grant.Keys
	for _, a := range run.Spec.Approvers {
		if k, err := grant.ParsePublicKey(a.Key); err == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// endorsers are the keys that have signed the pending candidate already.
func endorsers(run agent.Run) []grant.PublicKey {
	if run.Call == nil {
		return nil
	}
	var keys []grant.PublicKey
	for _, k := range pinnedKeys(run) {
		if slices.ContainsFunc(run.Call.Grants, func(g agent.Grant) bool { return g.Key == k.ID() }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// revoked says why a key that the run pinned may not sign for it any more; empty if it
// may. role is what today's configuration must give it. What cannot be read allows nothing.
func revoked(run agent.Run, key grant.PublicKey, dir string, now time.Time, role string) string {
	if made, err := config.ReadKeys(filepath.Join(dir, keysBelow)); err == nil && listed(made, key) != nil {
		return ""
	}
	if slices.ContainsFunc(run.Spec.Approvers, func(a agent.Approver) bool { return a.Scripted && a.Key == key.String() }) {
		return ""
	}
	home, err := configHome()
	if err != nil {
		return fmt.Sprintf("who may sign cannot be found out: %v", err)
	}
	u, err := config.LoadUser(home)
	if err != nil {
		return fmt.Sprintf("who may sign cannot be found out: %v", err)
	}
	today := listed(u.Keys(), key)
	switch {
	case today == nil:
		return fmt.Sprintf("the key of %s is no longer among the approvers of your configuration", key.Name)
	case !today.NotAfter.IsZero() && !now.Before(today.NotAfter):
		return fmt.Sprintf("the key of %s was to sign until %s", key.Name, today.NotAfter.Format(time.RFC3339))
	}
	if role != "" && !slices.Contains(today.Roles, role) {
		return fmt.Sprintf("%s no longer holds the role %q, which the tool needs", key.Name, role)
	}
	return ""
}

// listed finds a key in a list of approvers.
func listed(keys []agent.Approver, key grant.PublicKey) *agent.Approver {
	i := slices.IndexFunc(keys, func(a agent.Approver) bool {
		k, err := grant.ParsePublicKey(a.Key)
		return err == nil && k.ID() == key.ID()
	})
	if i < 0 {
		return nil
	}
	return &keys[i]
}
