package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/nodes"
)

// listening passes a model's turns on, and keeps what it was given.
type listening struct {
	nodes.Model
	heard *[][]byte
}

func (l listening) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nodes.Reply{}, err
	}
	*l.heard = append(*l.heard, data)
	return l.Model.Turn(ctx, r)
}

// staged sets a scenario up with the real servers, and listens to what the model is
// given and what is logged.
func staged(t *testing.T, s *Scenario) (st *Stage, heard *[][]byte, log *bytes.Buffer) {
	t.Helper()
	log, heard = &bytes.Buffer{}, &[][]byte{}
	st, err := SetUp(s, StageOptions{Self: executable(t), Dir: filepath.Join(t.TempDir(), "stage"), Run: "wire", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	script := s.setup.Script
	st.Host.Model = func(agent.Run) nodes.Model { return listening{&script, heard} }
	return st, heard, log
}

// The whole way of an approved save, with every part real. CHECKS 7: one connection
// while one process serves; 40: the file is the candidate, byte for byte; 78: what the
// model is given holds no key, grant, grant field or scope.
func TestWire_OfAnApprovedSave(t *testing.T) {
	st, heard, log := staged(t, shippedScenario(t, "approved"))
	ctx := t.Context()
	if _, _, err := st.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Host.Serve(ctx, "wire"); err != nil {
		t.Fatal(err)
	}
	run, _, err := Load(ctx, st.Host.Engine, "wire")
	if err != nil || run.State != agent.StateAwaitingApproval {
		t.Fatalf("%s, %v", run.State, err)
	}
	if n := strings.Count(log.String(), `"connection":"open"`); n != 1 {
		t.Errorf("%d connections were opened for three turns, want 1", n)
	}
	approval, err := Approval(run, st.Keys[0], time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Host.Deliver(ctx, run, approval); err != nil {
		t.Fatal(err)
	}
	if err := st.Host.Serve(ctx, "wire"); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(filepath.Join(st.Desk, "reports", "orvik.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range run.Call.Candidate.Fields {
		if body := agent.NewBody(saved); f.Name == "content" && (f.SHA256 != body.Ref.SHA256 || f.Bytes != body.Ref.Bytes) {
			t.Errorf("saved %s, the candidate says %s of %d bytes", body.Ref, f.SHA256, f.Bytes)
		}
	}
	wire := approval.Decision.(agent.Approve).Grant
	if len(*heard) != 4 {
		t.Fatalf("the model was asked %d times", len(*heard))
	}
	for _, secret := range []string{wire, wire[:40], `"grant"`, run.Spec.Approvers[0].Key, "ed25519", run.Spec.Servers[0].Scope, st.Dir} {
		for i, request := range *heard {
			if bytes.Contains(request, []byte(secret)) {
				t.Errorf("request %d holds %q", i+1, secret)
			}
		}
		if secret != "ed25519" && strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// CHECKS 74: what our own server may return at most comes through, unless escaping
// makes it more than the Host takes.
func TestWire_OfTheLargestDocuments(t *testing.T) {
	source := fmt.Sprintf(`scenario: large documents
task: read both
files:
  sources/a.md: "%s"
  sources/q.md: '%s'
model:
  script:
    - call: {tool: docs__read_document, args: {filename: a.md}}
    - expect_message: {status: ok, contains: aaaaaaaa}
      call: {tool: docs__read_document, args: {filename: q.md}}
    - expect_message: {status: unavailable}
      say: done
expect: {state: completed}
`, strings.Repeat("a", 24_000), strings.Repeat(`"`, 24_000))
	path := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadFile(path, LoadOptions{Config: filepath.Join("research", "sallyport.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	st, _, _ := staged(t, s)
	if _, _, err := st.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Host.Serve(t.Context(), "wire"); err != nil {
		t.Fatal(err)
	}
	if run, _, err := Load(t.Context(), st.Host.Engine, "wire"); err != nil || run.State != agent.StateCompleted {
		t.Errorf("%s (%s), %v", run.State, run.Reason, err)
	}
}
