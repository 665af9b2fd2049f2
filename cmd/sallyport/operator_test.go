package main

import (
	"os"
	osuser "os/user"
	"strconv"
	"strings"
	"testing"
)

// began is who began a run, as its journal has it.
func (u *user) began(run string) string {
	u.t.Helper()
	first, _, _ := strings.Cut(u.must(exitOK, "journal", run, "-o", "jsonl").stdout, "\n")
	return memberOfAny(first, "actor")
}

// Who began a run is the key that --as names, else the only key, else the account of
// the process; never what $USER says (it says ann here).
func TestRun_OperatorFollowsFromTheKeys(t *testing.T) {
	account := "uid " + strconv.Itoa(os.Getuid())
	if a, err := osuser.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		account = a.Username
	}
	u := newUser(t)
	deskFor(u, "text") // makes the key ann
	if err := os.RemoveAll(u.path("config")); err != nil {
		t.Fatal(err)
	}
	u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "bob")
	u.must(exitParked, "run", "task.yaml", "--id", "one")
	u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "cleo")
	u.must(exitParked, "run", "task.yaml", "--id", "two")
	u.must(exitParked, "run", "task.yaml", "--id", "three", "--as", "cleo")
	for run, want := range map[string]string{"one": "bob", "two": account, "three": "cleo"} {
		if got := u.began(run); got != want {
			t.Errorf("run %s was begun by %q, want %q", run, got, want)
		}
	}
	if got := u.must(exitNoKey, "run", "task.yaml", "--id", "four", "--as", "ann"); !strings.Contains(got.messages, `there is no key "ann"`) {
		t.Error(got.messages)
	}
	u.must(exitUsage, "show", "four")
}

// A run that nobody could ever approve is refused before it begins, with what each key
// is good for and what to do.
func TestRun_RefusesWhatNobodyCouldApprove(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	plain := u.read("sallyport.yaml")
	two := strings.NewReplacer("risk: write", "risk: destructive", "approvers: 1", "approvers: 2").Replace(plain)
	begin := func(config string, want exit, text string, more ...string) {
		t.Helper()
		u.write("sallyport.yaml", config)
		got := u.must(want, append([]string{"run", "task.yaml", "--id", "r"}, more...)...)
		if !strings.Contains(got.messages, text) {
			t.Errorf("lacks %q:\n%s", text, got.messages)
		}
	}
	begin(two, exitNoKey, "tool stub__put needs 2 approvals, by as many people, and none of the keys can give one; not by ann (begins the run)")
	begin(strings.Replace(two, "approvers: 2", "approvers: 2, own_key: true", 1), exitNoKey, "only 1 can be given: by ann")
	begin(strings.Replace(plain, "approvers: 1", "approvers: 1, role: editor", 1), exitNoKey, "in the role editor, and none of the keys can give one; not by ann (has not the role)")
	begin(strings.Replace(plain, "approvers: 1", "approvers: 1, role: editor", 1), exitNoKey, "next: give a key the role in your own config.yaml: approvers: [{key: NAME, roles: [editor]}]")
	u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "bob")
	u.write("config/sallyport/config.yaml", "approvers: [ann, bob]\n")
	begin(two, exitNoKey, "only 1 can be given: by ann; not by bob (begins the run)", "--as", "bob")
	begin(two, exitNoKey, "next: list keys of other people under approvers", "--as", "bob")
	if _, err := os.Stat(u.path("state")); err == nil {
		t.Error("a state directory was made")
	}
	begin(two, exitParked, "waits for approval", "--decide", "wait") // the account began it
}
