package scenarios

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// Approval signs the pending candidate of a run: the delivery that lets exactly its
// bytes happen, for as long as the contract allows from now.
func Approval(run agent.Run, key grant.PrivateKey, now time.Time) (agent.Delivery, error) {
	if run.State != agent.StateAwaitingApproval || run.Call == nil || run.Call.Candidate == nil {
		return agent.Delivery{}, fmt.Errorf("sign for run %s: no candidate is pending: it is in state %s", run.ID, run.State)
	}
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	name := key.Public().Name
	wire, err := grant.SignGrant(key, grant.Claims{
		Candidate: *run.Call.Candidate, Grant: hex.EncodeToString(id), Approver: name,
		NotBefore: now.Unix() - agent.GrantSkew, Expires: now.Unix() + tool.UseWithin,
	})
	if err != nil {
		return agent.Delivery{}, fmt.Errorf("sign for run %s: %w", run.ID, err)
	}
	return agent.Delivery{Key: agent.DeliveryKey(wire), Actor: name, Decision: agent.Approve{Grant: wire}}, nil
}

// Refusal turns the pending candidate of a run down, unsigned, as the operator named
// actor. It refuses exactly this candidate however often it is delivered.
func Refusal(run agent.Run, actor string) agent.Delivery {
	c := run.Call.Candidate
	return agent.Delivery{
		Key: agent.DeliveryKey("refusal " + c.ID + " " + c.Head), Actor: actor, Decision: agent.Refuse{Candidate: c.ID},
	}
}

// SignedRefusal is [Refusal] in the name of a key.
func SignedRefusal(run agent.Run, key grant.PrivateKey, now time.Time) (agent.Delivery, error) {
	c := run.Call.Candidate
	name := key.Public().Name
	wire, err := grant.SignRefusal(key, grant.Refusal{
		Candidate: c.ID, Run: run.ID, Approver: name, Head: c.Head, Time: now.Unix(),
	})
	if err != nil {
		return agent.Delivery{}, fmt.Errorf("sign for run %s: %w", run.ID, err)
	}
	return agent.Delivery{Key: agent.DeliveryKey(wire), Actor: name, Decision: agent.Refuse{Candidate: c.ID, Signed: wire}}, nil
}

// Edit signs other arguments for the pending candidate of a run. It grants nothing: the
// delivery replaces the candidate, and what is prepared in its place is asked for anew.
// The arguments are canonical, as [tools.Tool.DecodeArguments] returns them.
func Edit(run agent.Run, key grant.PrivateKey, arguments []byte, now time.Time) (agent.Delivery, error) {
	if run.State != agent.StateAwaitingApproval || run.Call == nil || run.Call.Candidate == nil {
		return agent.Delivery{}, fmt.Errorf("sign an edit for run %s: no candidate is pending: it is in state %s", run.ID, run.State)
	}
	c := run.Call.Candidate
	body := agent.NewBody(arguments)
	name := key.Public().Name
	wire, err := grant.SignEdit(key, grant.Edit{
		Candidate: c.ID, Run: run.ID, Arguments: body.Ref.SHA256, Bytes: body.Ref.Bytes,
		Approver: name, Head: c.Head, Time: now.Unix(),
	})
	if err != nil {
		return agent.Delivery{}, fmt.Errorf("sign an edit for run %s: %w", run.ID, err)
	}
	return agent.Delivery{
		Key: agent.DeliveryKey(wire), Actor: name, Bodies: []agent.Body{body},
		Decision: agent.Edit{Signed: wire, Arguments: body.Ref},
	}, nil
}

// Statement signs what a person found out about the write of a run whose outcome is
// unknown: one of the Verdict constants of package grant.
func Statement(run agent.Run, key grant.PrivateKey, verdict string, now time.Time) (agent.Delivery, error) {
	if run.State != agent.StateNeedsVerification || run.Call == nil || run.Call.Candidate == nil {
		return agent.Delivery{}, fmt.Errorf("sign a statement for run %s: no outcome is unknown: it is in state %s", run.ID, run.State)
	}
	c := run.Call.Candidate
	name := key.Public().Name
	wire, err := grant.SignStatement(key, grant.Statement{
		Call: run.Call.ID, Candidate: c.ID, Run: run.ID, Verdict: verdict, Approver: name, Head: c.Head, Time: now.Unix(),
	})
	if err != nil {
		return agent.Delivery{}, fmt.Errorf("sign a statement for run %s: %w", run.ID, err)
	}
	return agent.Delivery{Key: agent.DeliveryKey(wire), Actor: name, Decision: agent.Attest{Signed: wire}}, nil
}
