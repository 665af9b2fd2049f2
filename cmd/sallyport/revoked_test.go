package main

import (
	"strings"
	"testing"
	"time"
)

// twoSign gives the user a stub whose put two approvers must sign, and the keys of ann,
// bob and cleo.
func twoSign(u *user) {
	u.t.Helper()
	stubDesk(u)
	u.write("sallyport.yaml", strings.NewReplacer("risk: write", "risk: destructive", "approvers: 1", "approvers: 2").Replace(u.read("sallyport.yaml")))
	for _, name := range []string{"bob", "cleo"} {
		u.must(exitOK, "keys", "new", "--no-passphrase", "--as", name)
	}
	u.approvers("ann", "bob", "cleo")
}

// approvers makes these the approvers of the user's own configuration.
func (u *user) approvers(names ...string) {
	u.t.Helper()
	u.write("config/sallyport/config.yaml", "approvers: ["+strings.Join(names, ", ")+"]\n")
}

func (u *user) digest() string {
	u.t.Helper()
	return memberOf(u.t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
}

// A key that the run pinned, and that the configuration of today does not list, has
// expired, or has lost its role, signs nothing: refused at the door, and recorded.
func TestDoor_ARevokedKeySignsNothing(t *testing.T) {
	tests := map[string]struct {
		role  string
		today string
		says  string
	}{
		"removed":     {"", "approvers: [bob]\n", "the key of ann is no longer among the approvers"},
		"nobody":      {"", "nonsense: 1\n", "who may sign cannot be found out"},
		"expired":     {"", "approvers: [{key: ann, not_after: 2020-01-01}, bob]\n", "the key of ann was to sign until 2020-01-01T00:00:00Z"},
		"role is out": {", role: editor", "approvers: [ann, bob]\n", `ann no longer holds the role "editor"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			stubDesk(u)
			u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "bob")
			u.write("config/sallyport/config.yaml", "approvers: [{key: ann, roles: [editor]}, {key: bob, roles: [editor]}]\n")
			u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "{approvers: 1}", "{approvers: 1"+tt.role+"}", 1))
			u.must(exitParked, "run", "task.yaml", "--id", "r")
			digest, state := u.digest(), u.path("state/sallyport")
			before := u.read("config/sallyport/config.yaml")
			u.write("config/sallyport/config.yaml", tt.today)
			u.write("args.json", `{"text": "c"}`)
			tries := map[string][]string{
				" approve": {"approve", "r", "--sha256", digest}, " edit": {"approve", "r", "--edit=args.json"}, " refuse": {"reject", "r"},
			}
			if tt.role != "" {
				delete(tries, " refuse") // whoever approves no more may still refuse
			}
			for _, args := range tries {
				got := u.must(exitDenied, append(args, "--as", "ann", "--state", state)...)
				if !strings.Contains(got.messages, tt.says) {
					t.Errorf("%q: %s", args, got.messages)
				}
			}
			journal := u.must(exitOK, "journal", "r", "--state", state).stdout
			for what := range tries {
				if !strings.Contains(journal, "refused"+strings.Repeat(" ", 10)+what) {
					t.Errorf("that %q was refused is not recorded:\n%s", what, journal)
				}
			}
			if n := u.puts(); n != 0 {
				t.Errorf("%d writes", n)
			}
			u.write("config/sallyport/config.yaml", before)
			u.must(exitOK, "approve", "r", "--sha256", digest, "--as", "bob")
			u.must(exitOK, "audit", "r")
		})
	}
}

// A statement about an unknown outcome passes the same door.
func TestDoor_ARevokedKeyStatesNothing(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.unknown()
	u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "bob")
	u.approvers("bob")
	if got := u.must(exitDenied, "verify", "r", "--unknown", "--as", "ann"); !strings.Contains(got.messages, "no longer among the approvers") {
		t.Error(got.messages)
	}
	u.approvers("ann", "bob")
	u.must(exitOK, "verify", "r", "--applied", "--as", "ann")
}

// The first of two signatures does not outlive its key.
func TestDoor_AFirstSignatureDoesNotOutliveItsKey(t *testing.T) {
	u := newUser(t)
	twoSign(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := u.digest()
	u.must(exitParked, "approve", "r", "--sha256", digest, "--as", "bob")
	u.approvers("ann", "cleo")
	if got := u.must(exitDenied, "approve", "r", "--sha256", digest, "--as", "cleo"); !strings.Contains(got.messages, "the key of bob is no longer") {
		t.Error(got.messages)
	}
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes", n)
	}
	u.must(exitOK, "reject", "r")
}

// Revoked while the question is open: the answer comes too late.
func TestDoor_RevokedWhileItIsAsked(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	s := u.open("run", "task.yaml", "--id", "r")
	s.see(asks)
	u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "bob")
	u.approvers("bob")
	s.enter("approve\n")
	s.see("The decision was not taken: the key of ann is no longer among the approvers")
	s.enter(ctrlC)
	s.end()
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// A new key does not reach runs that began before it: they take the old one until its
// not-after, and runs that begin later take both.
func TestKeys_Rotation(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "old")
	digest := u.digest()
	u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "ann-2")
	u.write("config/sallyport/config.yaml", "approvers: [{key: ann, not_after: 2999-01-01}, ann-2]\n")
	if got := u.must(exitNoKey, "approve", "old", "--sha256", digest, "--as", "ann-2"); !strings.Contains(got.messages, "its approvers are ann") {
		t.Error(got.messages)
	}
	u.must(exitParked, "run", "task.yaml", "--id", "new")
	u.must(exitOK, "approve", "old", "--sha256", digest)
	u.must(exitOK, "approve", "new", "--sha256", digest, "--as", "ann-2")

	u.must(exitParked, "run", "task.yaml", "--id", "late")
	u.write("config/sallyport/config.yaml", "approvers: [{key: ann, not_after: 2020-01-01}, ann-2]\n")
	u.must(exitDenied, "approve", "late", "--sha256", digest, "--as", "ann")
	u.must(exitOK, "approve", "late", "--sha256", digest, "--as", "ann-2")
	u.must(exitParked, "run", "task.yaml", "--id", "after")
	u.must(exitNoKey, "approve", "after", "--sha256", digest, "--as", "ann") // pinned with its date
	u.must(exitOK, "approve", "after", "--sha256", digest)
	u.must(exitOK, "audit")
}

// Refused, expired and cancelled are three ends of a candidate, each for good, and an
// answer that comes later is told which.
func TestDecisions_EachEndIsForGood(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "{approvers: 1}", "{approvers: 1, expires: 2s}", 1))
	for id, end := range map[string]func(){
		"refused":   func() { u.must(exitOK, "reject", "refused") },
		"cancelled": func() { u.must(exitOK, "cancel", "cancelled") },
		"expired": func() {
			digest := u.digest()
			expires, err := time.Parse(time.RFC3339, memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "expires"))
			if err != nil {
				t.Fatal(err)
			}
			u.until("the candidate expired", func() bool { return time.Now().After(expires) })
			if got := u.must(exitDenied, "approve", "expired", "--sha256", digest); !strings.Contains(got.messages, ": the candidate expired at ") {
				t.Error(got.messages)
			}
			u.must(exitOK, "resume", "expired")
		},
	} {
		t.Run(id, func(t *testing.T) {
			u.must(exitParked, "run", "task.yaml", "--id", id)
			digest := u.digest()
			end()
			u.must(exitDenied, "approve", id, "--sha256", digest)
			u.must(exitDenied, "reject", id)
			if got := u.must(exitOK, "show", id, "-o", "json").stdout; !strings.Contains(got, id) {
				t.Error(got)
			}
			u.must(exitOK, "audit", id)
		})
	}
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes", n)
	}
}
