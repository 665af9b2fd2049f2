package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/grant"
)

// The time limits of tests, which hold on a loaded machine too.
const (
	// patient is the limit of scripted servers, which no test waits for.
	patient = 60 * time.Second
	// quick is what shows that it was not waited for.
	quick = patient / 2
	// impatient is the limit where a test waits for it to pass, and nothing else is to be
	// done in it.
	impatient = time.Second
)

// running is a run with its bridge, driven by hand as an engine would.
type running struct {
	t      *testing.T
	stand  *stand
	bridge *Bridge
	run    agent.Run
	keys   []grant.PrivateKey
	now    time.Time
	n      int
}

// limit changes the server's time limit, from now on; 0 is the default.
func (r *running) limit(d time.Duration) { r.bridge.registry.Servers()[0].Timeout = tools.Duration(d) }

// begin discovers, pins what is found and makes the bridge.
func (s *stand) begin(t *testing.T, change ...func(*Config)) *running {
	t.Helper()
	for _, f := range change {
		f(&s.cfg)
	}
	r := &running{t: t, stand: s, now: time.Now()}
	s.cfg.Now = func() time.Time { return r.now }
	s.cfg.Log = zerolog.New(s.logs)
	found, err := Discover(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Servers) == 0 {
		t.Fatalf("no server answered the discovery: %v", found.Problems)
	}
	r.resume(found)
	return r
}

// resume makes a new bridge for the run, as another process would.
func (r *running) resume(found Found) {
	r.t.Helper()
	spec := agent.Spec{Run: "run-1", Tools: found.Tools, Servers: found.Servers, Budget: agent.DefaultBudget}
	for _, name := range []string{"ann", "bob"} {
		k, err := grant.NewPrivateKey(name, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		r.keys = append(r.keys, k)
		spec.Approvers = append(spec.Approvers, agent.Approver{Key: k.Public().String()})
	}
	r.run = agent.Run{ID: spec.Run, Spec: spec, Budget: spec.Budget}
	r.open()
}

func (r *running) open() {
	r.t.Helper()
	b, err := New(r.stand.cfg, r.run.Spec)
	if err != nil {
		r.t.Fatal(err)
	}
	r.bridge = b
	r.t.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.t.Error(err)
		}
	})
}

// propose puts a call in hand.
func (r *running) propose(name, arguments string) Call {
	r.n++
	r.run.Call = &agent.Call{ID: agent.CallID(r.run.ID, int64(r.n), 0), Proposal: agent.Proposal{Tool: name}}
	return Call{Run: r.run, Name: name, Arguments: arguments, Head: head(r.n)}
}

func head(n int) string {
	sum := sha256.Sum256([]byte{byte(n)})
	return hex.EncodeToString(sum[:])
}

func (r *running) prepare(c Call) agent.Result {
	r.t.Helper()
	result, bodies, err := r.bridge.Prepare(r.t.Context(), c)
	if err != nil {
		r.t.Fatalf("prepare: %v", err)
	}
	named := map[agent.BodyRef]bool{}
	for _, b := range bodies {
		if agent.NewBody(b.Data).Ref != b.Ref {
			r.t.Errorf("a body is not what its reference says")
		}
		named[b.Ref] = true
	}
	var ref agent.BodyRef
	switch v := result.(type) {
	case agent.Checked:
		ref = v.Arguments
	case agent.Returned:
		ref = v.Arguments
	}
	if !ref.IsZero() && !named[ref] {
		r.t.Errorf("the arguments' body was not returned")
	}
	return result
}

// refused prepares and wants a refusal.
func (r *running) refused(c Call) agent.Returned {
	r.t.Helper()
	out, ok := r.prepare(c).(agent.Returned)
	if !ok {
		r.t.Fatalf("the call was let through")
	}
	if out.Sent {
		r.t.Errorf("prepare claims to have sent something")
	}
	return out
}

// checked prepares, and journals the intent as an engine would.
func (r *running) checked(c Call) Call {
	r.t.Helper()
	result := r.prepare(c)
	ok, is := result.(agent.Checked)
	if !is {
		r.t.Fatalf("prepare: %+v", result)
	}
	call := *c.Run.Call
	call.Arguments, call.Sent = ok.Arguments, true
	c.Run.Call = &call
	r.run.Used.Calls++
	c.Run.Used = r.run.Used
	return c
}

func (r *running) send(c Call) agent.Returned {
	r.t.Helper()
	out, bodies, err := r.bridge.Send(r.t.Context(), c)
	if err != nil {
		r.t.Fatalf("send: %v", err)
	}
	if !out.Body.IsZero() && (len(bodies) != 1 || bodies[0].Ref != out.Body) {
		r.t.Errorf("the result's body was not returned")
	}
	return out
}

// read makes a whole call of the read tool.
func (r *running) read() agent.Returned {
	r.t.Helper()
	return r.send(r.checked(r.propose("s__find", `{"query":"x"}`)))
}

const saveArguments = `{"content":"hello","filename":"a.md"}`

// approved proposes a save, has it signed and prepares it again: it returns the call
// that is ready to be sent.
func (r *running) approved(arguments string, signers ...int) Call {
	r.t.Helper()
	return r.checked(r.granted(r.propose("s__save", arguments), signers...))
}

// granted is the call with the signatures that it waits for.
func (r *running) granted(c Call, signers ...int) Call {
	r.t.Helper()
	out := r.refused(c)
	if out.Status != agent.StatusWaitingApproval || out.Candidate == nil {
		r.t.Fatalf("prepare of a write: %+v", out.Outcome)
	}
	call := *c.Run.Call
	call.Candidate, call.Arguments = out.Candidate, out.Arguments
	if signers == nil {
		signers = []int{0}
	}
	for _, i := range signers {
		call.Grants = append(call.Grants, r.sign(*out.Candidate, i, 10*time.Minute))
	}
	c.Run.Call = &call
	c.Head = head(100 + r.n) // another entry has opened the second Prepare
	return c
}

func (r *running) sign(c grant.Candidate, signer int, lasts time.Duration) agent.Grant {
	r.t.Helper()
	k := r.keys[signer]
	claims := grant.Claims{
		Candidate: c, Grant: head(signer)[:32], Approver: k.Public().Name,
		NotBefore: r.now.Unix() - 60, Expires: r.now.Add(lasts).Unix(),
	}
	wire, err := grant.SignGrant(k, claims)
	if err != nil {
		r.t.Fatal(err)
	}
	return agent.Grant{Wire: wire, Key: k.Public().ID(), Approver: k.Public().Name, Expires: claims.Expires}
}

// logged lists the log's lines.
func (r *running) logged() []map[string]any {
	r.t.Helper()
	var lines []map[string]any
	for dec := json.NewDecoder(strings.NewReader(r.stand.logs.String())); dec.More(); {
		var m map[string]any
		if err := dec.Decode(&m); err != nil {
			r.t.Fatal(err)
		}
		lines = append(lines, m)
	}
	return lines
}

// is checks status, class and reason of an outcome.
func (r *running) is(out agent.Outcome, status agent.Status, class agent.Class, reason string) {
	r.t.Helper()
	if out.Status != status || out.Class != class || out.Reason != reason {
		r.t.Errorf("outcome %s/%s/%s, want %s/%s/%s", out.Status, out.Class, out.Reason, status, class, reason)
	}
}

func (r *running) counts(lists, calls int) {
	r.t.Helper()
	if l, c := r.stand.lists(), r.stand.calls(); l != lists || c != calls {
		r.t.Errorf("the server received %d tools/list and %d tools/call, want %d and %d", l, c, lists, calls)
	}
}
