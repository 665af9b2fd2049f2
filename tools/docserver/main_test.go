//go:build linux || darwin

package docserver

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sallyport/tools/grant"
	"sallyport/tools/stdio/stdiotest"
	"sallyport/tools/strictjson"
)

// The test binary becomes a document server when childEnv names a configuration file.
const (
	childEnv  = "SALLYPORT_DOCS_CHILD"
	umaskEnv  = "SALLYPORT_DOCS_UMASK"  // octal: the umask of the child
	panicEnv  = "SALLYPORT_DOCS_PANIC"  // the tool whose handler panics
	threadEnv = "SALLYPORT_DOCS_THREAD" // the tool whose handler stays on one thread, for strace
)

func TestMain(m *testing.M) {
	if path, ok := os.LookupEnv(childEnv); ok {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

func child(path string) int {
	if mask := os.Getenv(umaskEnv); mask != "" {
		var value int
		_, _ = fmt.Sscanf(mask, "%o", &value)
		syscall.Umask(value)
	}
	panics, stays := os.Getenv(panicEnv), os.Getenv(threadEnv)
	if panics == "" && stays == "" {
		return Serve(context.Background(), path, os.Stdin, os.Stdout, os.Stderr)
	}
	config, err := LoadConfig(path)
	if err != nil {
		return refuse(os.Stderr, err)
	}
	s, err := New(config, Options{Log: zerolog.New(os.Stderr)})
	if err != nil {
		return refuse(os.Stderr, err)
	}
	s.began = func(tool string) {
		if tool == panics {
			panic("planted")
		}
		if tool == stays {
			runtime.LockOSThread()
		}
	}
	return s.serveProcess(context.Background(), os.Stdin, os.Stdout)
}

// desk is a workspace on disk with a configuration, and the approver who signs for it.
type desk struct {
	t      testing.TB
	dir    string // holds desk/, ledger/ and config.json
	root   string
	config Config
	keys   []approver
}

// approver signs with a bare key, so that a test can also sign what package grant would not.
type approver struct {
	name   string
	secret ed25519.PrivateKey
}

func newApprover(t testing.TB, name string) approver {
	t.Helper()
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	return approver{name: name, secret: secret}
}

func (a approver) public() grant.PublicKey {
	return grant.PublicKey{Name: a.name, Key: a.secret.Public().(ed25519.PublicKey)}
}

// seal is the wire form of any payload under any payload type.
func (a approver) seal(payloadType, payload string) string {
	signed := fmt.Sprintf("DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
	envelope := fmt.Sprintf(`{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}`,
		base64.StdEncoding.EncodeToString([]byte(payload)), payloadType, a.public().ID(),
		base64.StdEncoding.EncodeToString(ed25519.Sign(a.secret, []byte(signed))))
	return base64.RawURLEncoding.EncodeToString([]byte(envelope))
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), keys: []approver{newApprover(t, "alice"), newApprover(t, "bob")}}
	d.root = filepath.Join(d.dir, "desk")
	ledger := filepath.Join(d.dir, "ledger")
	for _, dir := range []string{d.root, d.path("sources"), d.path("reports")} {
		must(t, os.Mkdir(dir, 0o755))
	}
	must(t, os.Mkdir(ledger, 0o700))
	d.config = Config{Root: d.root, Scope: "desk/reading", Audience: "docs at desk", Ledger: ledger,
		Keys: []string{d.keys[0].public().String(), d.keys[1].public().String()}}
	return d
}

func (d *desk) path(parts ...string) string {
	return filepath.Join(append([]string{d.root}, parts...)...)
}

func (d *desk) source(name, content string) {
	d.t.Helper()
	must(d.t, os.WriteFile(d.path("sources", name), []byte(content), 0o644))
}

// reports lists the names in reports/.
func (d *desk) reports() string {
	d.t.Helper()
	return names(d.t, d.path("reports"))
}

func names(t testing.TB, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, entry := range list {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

// file writes the configuration as the Host does and returns its path.
func (d *desk) file() string {
	d.t.Helper()
	text, err := json.Marshal(map[string]any{
		"root": d.config.Root, "scope": d.config.Scope, "audience": d.config.Audience, "keys": d.config.Keys,
		"ledger": d.config.Ledger, "approvers": d.config.approvers(), "mirror_text": d.config.MirrorText,
	})
	must(d.t, err)
	path := filepath.Join(d.dir, "config.json")
	must(d.t, os.WriteFile(path, text, 0o600))
	return path
}

// start starts the server as a child with a clean environment.
func (d *desk) start(env ...string) *stdiotest.Client {
	d.t.Helper()
	return d.startAs(stdiotest.Current, env...)
}

func (d *desk) startAs(version string, env ...string) *stdiotest.Client {
	d.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{childEnv + "=" + d.file()}, env...)
	return stdiotest.Start(d.t, cmd, version)
}

// server is the server inside the test process, with a clock of the test's.
func (d *desk) server(now func() time.Time) *Server {
	d.t.Helper()
	s, err := New(d.config, Options{Now: now})
	must(d.t, err)
	d.t.Cleanup(func() { must(d.t, s.Close()) })
	return s
}

// claims are good claims for saving content under name, from now for a minute. Each change alters them.
func (d *desk) claims(name, content string, changes ...func(*grant.Claims)) grant.Claims {
	d.t.Helper()
	arguments, err := strictjson.Encode(map[string]string{"filename": name, "content": content})
	must(d.t, err)
	_, definition := Definition(ToolSave)
	candidate, err := grant.Candidate{
		Audience: d.config.Audience, Scope: d.config.Scope, Run: "run-1", Tool: ToolSave, Call: "call-1",
		Definition: definition, Head: strings.Repeat("0", 64),
	}.Bind(arguments)
	must(d.t, err)
	now := time.Now().Unix()
	claims := grant.Claims{Candidate: candidate, Grant: strings.Repeat("1", 32), Approver: "alice",
		NotBefore: now - 60, Expires: now + 60}
	for _, change := range changes {
		change(&claims)
	}
	c := &claims.Candidate
	c.ID = grant.CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
	return claims
}

// sign signs claims as the approver that they name, without any of the checks of package grant.
func (d *desk) sign(claims grant.Claims) string {
	d.t.Helper()
	payload, err := strictjson.Encode(claims)
	must(d.t, err)
	for _, key := range d.keys {
		if key.name == claims.Approver {
			return key.seal(grant.KindGrant.PayloadType(), string(payload))
		}
	}
	d.t.Fatalf("no approver %q", claims.Approver)
	return ""
}

// grant is a good grant.
func (d *desk) grant(name, content string, changes ...func(*grant.Claims)) string {
	d.t.Helper()
	return d.sign(d.claims(name, content, changes...))
}

// call is one candidate after another: a change for claims.
func call(id string) func(*grant.Claims) {
	return func(c *grant.Claims) { c.Candidate.Call = id }
}

// saving are the arguments of save_report.
func saving(name, content, wire string) string {
	text, err := strictjson.Encode(map[string]string{"filename": name, "content": content, "grant": wire})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func settling(name, wire string) string {
	text, err := strictjson.Encode(map[string]string{"filename": name, "grant": wire})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// answer is what a tool said.
type answer struct {
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (a answer) String() string { return fmt.Sprintf("%s %q %.300s", a.Status, a.Message, a.Data) }

// ask calls a tool and checks the shape of SPEC D7 and the wire form of its answer.
func ask(t testing.TB, c *stdiotest.Client, tool, arguments string) answer {
	t.Helper()
	got := c.Call(tool, arguments)
	var a answer
	if err := strictjson.Decode(got.Structured, &a); err != nil {
		t.Fatalf("%s: structured content %.200s: %v", tool, got.Structured, err)
	}
	if got.IsError || len(got.Content) != 1 || got.Content[0].Type != "text" || got.Content[0].Text != a.Message {
		t.Errorf("%s: isError %v, content %+v, message %q", tool, got.IsError, got.Content, a.Message)
	}
	checkShape(t, tool, got.Structured)
	data, err := strictjson.Canonical(a.Data) // undoes the escapes that the protocol library adds
	must(t, err)
	a.Data = data
	return a
}

// expect calls a tool and checks the answer's status and, if it is given, its data.
func expect(t testing.TB, c *stdiotest.Client, tool, arguments, status string, data ...string) answer {
	t.Helper()
	a := ask(t, c, tool, arguments)
	if a.Status != status {
		t.Errorf("%s %.200s: %v, want %s", tool, arguments, a, status)
	}
	want := "{}"
	if len(data) == 1 {
		want = data[0]
	}
	if (status != StatusOK || len(data) == 1) && string(a.Data) != want {
		t.Errorf("%s %.200s: data %.300s, want %.300s", tool, arguments, a.Data, want)
	}
	return a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
