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
