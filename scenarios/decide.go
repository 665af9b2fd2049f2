package scenarios

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

// decide gives the decisions about the n-th candidate; false if the run parks.
func (p *play) decide(ctx context.Context, run agent.Run, n int) (bool, error) {
	if p.options.Present != nil {
		if err := p.options.Present(ctx, p.stage, run); err != nil {
			return false, err
		}
	}
	if err := p.show(ctx, run); err != nil {
		return false, err
	}
	deliveries := p.deliveries(n)
	for j, d := range deliveries.List {
		if d.Do == VerbWait {
			return false, nil
		}
		if d.After > 0 {
			p.jump(d.After.Std())
		}
		at := append([]string{"approvals", index(n)}, deliveries.step(j)...)
		if err := p.give(ctx, run, d, at); err != nil {
			return false, fmt.Errorf("play %q: decision %d: %w", p.stage.Scenario.File, n+1, err)
		}
	}
	now, _, err := Load(ctx, p.stage.Host.Engine, run.ID)
	return now.State != agent.StateAwaitingApproval || p.overdue(now), err
}

// show notes how a person would see the candidate, if the scenario expects something of it.
func (p *play) show(ctx context.Context, run agent.Run) error {
	if p.stage.Scenario.Expect.Shown == nil || p.options.Show == nil {
		return nil
	}
	var b strings.Builder
	if err := p.options.Show(ctx, p.stage.Host, run, &b); err != nil {
		return fmt.Errorf("show the candidate: %w", err)
	}
	p.tape.add(record{Shown: b.String()})
	return nil
}

// overdue reports whether the candidate has expired, and only nobody has said so yet.
func (p *play) overdue(run agent.Run) bool {
	return !run.Deadline.IsZero() && !p.stage.clock.now().Before(run.Deadline)
}

// deliveries are the decisions about a candidate: none are to wait.
func (p *play) deliveries(n int) Deliveries {
	switch all := p.stage.Scenario.Approvals; {
	case p.options.Decide != "":
		return Deliveries{List: []Delivery{{Do: p.options.Decide}}, plain: true}
	case n < len(all):
		return all[n]
	}
	return Deliveries{List: []Delivery{{Do: VerbWait}}, plain: true}
}

// give hands one decision in, and notes the verdict.
func (p *play) give(ctx context.Context, run agent.Run, d Delivery, at []string) error {
	p.tape.add(record{Handed: strings.Join(at, ".")})
	if d.Do == VerbApprove && d.By == "" {
		return p.approve(ctx, run, d, at)
	}
	made, err := p.make(ctx, run, d)
	if err != nil {
		return err
	}
	v, err := p.stage.Host.Deliver(ctx, run, made)
	if err != nil {
		return err
	}
	p.tape.add(record{Grant: wireOf(made, v), Given: p.verdict(v, d.Do.genuine(), d.Expect, at...)})
	return nil
}

// wireOf is the grant of a delivery that was taken.
func wireOf(d agent.Delivery, v agent.Verdict) string {
	if a, ok := d.Decision.(agent.Approve); ok && v.Refusal == nil {
		return a.Grant
	}
	return ""
}

// approve signs with as many keys as it takes.
func (p *play) approve(ctx context.Context, run agent.Run, d Delivery, at []string) error {
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	var v agent.Verdict
	for signed := len(run.Call.Grants); ; signed++ {
		key, ok := p.able(run, tool, signed)
		if !ok {
			key = p.stage.Keys[0] // it is refused, and says so
		}
		made, err := Approval(run, key, p.stage.clock.now())
		if err != nil {
			return err
		}
		if v, err = p.stage.Host.Deliver(ctx, run, made); err != nil {
			return err
		}
		p.tape.add(record{Grant: wireOf(made, v)})
		if v.Refusal != nil || v.Row == agent.RowGranted {
			break
		}
	}
	p.tape.add(record{Given: p.verdict(v, true, d.Expect, at...)})
	return nil
}

// able is the n-th key that may sign for a tool.
func (p *play) able(run agent.Run, tool agent.Tool, n int) (grant.PrivateKey, bool) {
	for _, a := range run.Spec.Approvers {
		if tool.Role != "" && !slices.Contains(a.Roles, tool.Role) {
			continue
		}
		public, err := grant.ParsePublicKey(a.Key)
		if err != nil || tool.Approvers > 1 && !tool.OwnKey && public.Name == run.Operator {
			continue
		}
		if n == 0 {
			return p.stage.key(public.Name), true
		}
		n--
	}
	return grant.PrivateKey{}, false
}

// make makes the delivery of a decision.
func (p *play) make(ctx context.Context, run agent.Run, d Delivery) (agent.Delivery, error) {
	key, now := p.stage.key(d.By), p.stage.clock.now()
	if d.By == "" && run.Call != nil {
		tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
		if first, ok := p.able(run, tool, 0); ok {
			key = first
		}
	}
	switch d.Do {
	case VerbApprove:
		return Approval(run, key, now)
	case VerbReject:
		if d.By == "" {
			return Refusal(run, p.stage.Host.Actor), nil
		}
		return SignedRefusal(run, key, now)
	case VerbEdit:
		return p.edit(ctx, run, key, d)
	case VerbForge:
		return forged(run, key, d.How, now)
	case VerbReplay:
		wire := p.tape.lastGrant()
		if wire == "" {
			return agent.Delivery{}, fmt.Errorf("there is no earlier grant to replay")
		}
		return carry(wire, key, fmt.Sprintf("replay %s %d", wire, run.Seq)), nil
	case VerbLate:
		p.jump(max(0, run.Deadline.Sub(now)) + time.Second)
		return Approval(run, key, run.Time)
	case VerbOther:
		return other(run, key, now)
	case VerbWait:
	}
	return agent.Delivery{}, fmt.Errorf("%q is nothing to hand in", d.Do)
}

// edit puts other arguments in place of the model's.
func (p *play) edit(ctx context.Context, run agent.Run, key grant.PrivateKey, d Delivery) (agent.Delivery, error) {
	tool, err := PinnedTool(ctx, p.stage.Host.Engine, run, run.Call.Proposal.Tool)
	if err != nil {
		return agent.Delivery{}, err
	}
	arguments, err := tool.DecodeArguments(string(*d.Args))
	if err != nil {
		// What the tool does not take is delivered all the same: the run refuses it.
		if arguments, err = strictjson.Canonical(*d.Args); err != nil {
			return agent.Delivery{}, err
		}
	}
	return Edit(run, key, arguments, p.stage.clock.now())
}

// carry delivers a grant, whatever it is, in the name of a key.
func carry(wire string, key grant.PrivateKey, delivery string) agent.Delivery {
	return agent.Delivery{Key: agent.DeliveryKey(delivery), Actor: key.Public().Name, Decision: agent.Approve{Grant: wire}}
}

// forged delivers what looks like a grant of the key and is none.
func forged(run agent.Run, key grant.PrivateKey, how Forgery, now time.Time) (agent.Delivery, error) {
	if how == "" {
		how = ForgeStranger
	}
	if how == ForgeStranger {
		stranger, err := grant.NewPrivateKey(key.Public().Name, nil)
		if err != nil {
			return agent.Delivery{}, fmt.Errorf("make a stranger's key: %w", err)
		}
		return Approval(run, stranger, now)
	}
	good, err := Approval(run, key, now)
	if err != nil {
		return good, err
	}
	wire := good.Decision.(agent.Approve).Grant
	switch how {
	case ForgeBit:
		data, err := base64.RawURLEncoding.DecodeString(wire)
		if err != nil {
			return good, fmt.Errorf("read a grant: %w", err)
		}
		// A letter within the signature: the form stays good.
		at := strings.LastIndex(string(data), `"sig":"`) + len(`"sig":"`) + 8
		data[at] = map[bool]byte{true: 'B', false: 'A'}[data[at] == 'A']
		wire = base64.RawURLEncoding.EncodeToString(data)
	case ForgeCut:
		wire = wire[:len(wire)/2]
	case ForgeText:
		wire = "approve"
	case ForgeEmpty:
		wire = ""
	case ForgeStranger:
	}
	return carry(wire, key, fmt.Sprintf("forged %s %s", how, wire)), nil
}

// other signs, rightly, for other arguments than those that wait.
func other(run agent.Run, key grant.PrivateKey, now time.Time) (agent.Delivery, error) {
	altered := run
	call := *run.Call
	candidate := *run.Call.Candidate
	candidate.Arguments = strictjson.Digest([]byte(candidate.Arguments))
	candidate.ID = grant.CandidateID(candidate.Run, candidate.Call, candidate.Arguments, candidate.Definition)
	call.Candidate = &candidate
	altered.Call = &call
	return Approval(altered, key, now)
}
