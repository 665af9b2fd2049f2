//go:build linux || darwin

package docserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
	"sallyport/workspace"
)

// refuses saves with a wire that must be refused, in the one sentence, with nothing written anywhere.
func refuses(t *testing.T, d *desk, s *Server, name, content, wire, why string) {
	t.Helper()
	got := s.save(t.Context(), []byte(saving(name, content, wire)))
	if got.Status != StatusRejected || got.Message != refusedSave.Message {
		t.Errorf("%s: %s %q", why, got.Status, got.Message)
	}
	if left := d.reports() + names(t, d.config.Ledger); left != "" {
		t.Errorf("%s: wrote %s", why, left)
	}
}

// forgeries are wires that no approver of the desk signed for report.md with "content", and why.
func forgeries(t *testing.T, d *desk) map[string]string {
	t.Helper()
	good := d.grant("report.md", "content")
	stranger := newApprover(t, "alice")
	payload, err := strictjson.Encode(d.claims("report.md", "content"))
	must(t, err)
	grantType := grant.KindGrant.PayloadType()
	all := map[string]string{
		"unknown key":       stranger.seal(grantType, string(payload)),
		"cut":               good[:len(good)-1],
		"cut in half":       good[:len(good)/2],
		"longer":            good + "A",
		"twice":             good + "." + good,
		"empty claims":      d.keys[0].seal(grantType, `{}`),
		"no claims":         d.keys[0].seal(grantType, ``),
		"claims are null":   d.keys[0].seal(grantType, `null`),
		"another kind":      d.keys[0].seal(grant.KindEdit.PayloadType(), string(payload)),
		"a kind of its own": d.keys[0].seal("application/json", string(payload)),
		"another's name":    d.keys[1].seal(grantType, string(payload)),
		"approved":          "approved",
		"true":              "true",
		"bare payload":      base64.RawURLEncoding.EncodeToString(payload),
		"padded":            good + "=",
		"with white space":  " " + good,
		"standard alphabet": base64.StdEncoding.EncodeToString([]byte(good)),
	}
	for _, at := range []int{0, len(good) / 3, len(good) / 2, len(good) - 2} {
		flipped := []byte(good)
		flipped[at] ^= 1
		all[fmt.Sprintf("one bit at %d", at)] = string(flipped)
	}
	return all
}

// CHECKS 15: over the wire, no file and no ledger entry.
func TestSave_RefusesForgedGrants(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	for why, wire := range forgeries(t, d) {
		a := expect(t, c, ToolSave, saving("report.md", "content", wire), StatusRejected)
		if a.Message != refusedSave.Message {
			t.Errorf("%s: %v", why, a)
		}
		if left := d.reports() + names(t, d.config.Ledger); left != "" {
			t.Errorf("%s: wrote %s", why, left)
		}
	}
	expect(t, c, ToolSave, saving("report.md", "content", d.grant("report.md", "content")), StatusOK)
}

// CHECKS 15: no single bit of a grant may be another.
func TestSave_RefusesEveryFlippedBit(t *testing.T) {
	d := newDesk(t)
	s := d.server(nil)
	good := d.grant("report.md", "content")
	for at := range good {
		flipped := []byte(good)
		flipped[at] ^= 1 << (at % 7)
		refuses(t, d, s, "report.md", "content", string(flipped), fmt.Sprintf("bit of character %d", at))
	}
}

// CHECKS 36, 37, 38, 42: a claim that is not that of this call; each is signed rightly.
func TestSave_RefusesAnyOtherClaim(t *testing.T) {
	other := strings.Repeat("a", 64)
	for why, change := range map[string]func(*grant.Claims){
		"scope":         func(c *grant.Claims) { c.Candidate.Scope = "desk/writing" },
		"audience":      func(c *grant.Claims) { c.Candidate.Audience = "docs elsewhere" },
		"tool":          func(c *grant.Claims) { c.Candidate.Tool = ToolSettle },
		"prefixed tool": func(c *grant.Claims) { c.Candidate.Tool = "docs__save_report" },
		"definition":    func(c *grant.Claims) { c.Candidate.Definition = other },
		"arguments":     func(c *grant.Claims) { c.Candidate.Arguments = other },
		"size":          func(c *grant.Claims) { c.Candidate.Bytes++ },
		"field digest":  func(c *grant.Claims) { c.Candidate.Fields[0].SHA256 = other },
		"field size":    func(c *grant.Claims) { c.Candidate.Fields[0].Bytes++ },
		"field name":    func(c *grant.Claims) { c.Candidate.Fields[0].Name = "bytes" },
		"expired":       func(c *grant.Claims) { c.Expires = c.NotBefore + 1 },
		"not yet valid": func(c *grant.Claims) { c.NotBefore, c.Expires = c.Expires, c.Expires+60 },
		"no time":       func(c *grant.Claims) { c.NotBefore, c.Expires = c.Expires, c.NotBefore },
		"scope, folded": func(c *grant.Claims) { c.Candidate.Scope = "Desk/Reading" },
		"scope, longer": func(c *grant.Claims) { c.Candidate.Scope += "/more" },
	} {
		d := newDesk(t)
		c := d.start()
		expect(t, c, ToolSave, saving("report.md", "content", d.grant("report.md", "content", change)), StatusRejected)
		if left := d.reports() + names(t, d.config.Ledger); left != "" {
			t.Errorf("%s: wrote %s", why, left)
		}
		expect(t, c, ToolSave, saving("report.md", "content", d.grant("report.md", "content")), StatusOK)
	}
}

// CHECKS 36, 37: other arguments than those that were approved.
func TestSave_RefusesOtherArguments(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	wire := d.grant("report.md", "content")
	for _, arguments := range []string{
		saving("report.md", "content ", wire), saving("report.md", "Content", wire), saving("other.md", "content", wire),
		saving("report.md", "content", wire)[:1] + `"extra":1,` + saving("report.md", "content", wire)[1:],
		`{"filename":"report.md","content":"content","content":"content","grant":"` + wire + `"}`,
		`{"filename":"report.md","content":5,"grant":"` + wire + `"}`,
		`{"filename":"report.md","content":"cont\ud800ent","grant":"` + wire + `"}`,
		`{"filename":"report.md","grant":"` + wire + `"}`,
		`{"filename":"report.md","content":"content","Grant":"` + wire + `"}`,
	} {
		expect(t, c, ToolSave, arguments, StatusRejected)
	}
	if left := d.reports() + names(t, d.config.Ledger); left != "" {
		t.Errorf("wrote %s", left)
	}
	// The same arguments in another form are the approved ones.
	expect(t, c, ToolSave, ` { "grant" : "`+wire+`" , "filename":"report\u002emd", "content":"c\u006fntent" } `, StatusOK)
}

// CHECKS 42: missing, extra and mistyped claims, rightly signed.
func TestSave_RefusesMisshapenClaims(t *testing.T) {
	d := newDesk(t)
	s := d.server(nil)
	payload, err := strictjson.Encode(d.claims("report.md", "content"))
	must(t, err)
	good := string(payload)
	try := func(why, payload string) {
		refuses(t, d, s, "report.md", "content", d.keys[0].seal(grant.KindGrant.PayloadType(), payload), why)
	}
	for _, inner := range []bool{false, true} {
		text := []byte(good)
		if inner {
			var outer struct{ Candidate json.RawMessage }
			must(t, json.Unmarshal(text, &outer))
			text = outer.Candidate
		}
		members, err := strictjson.Members(text)
		must(t, err)
		for i, member := range members {
			whole := func(changed []strictjson.Member) string {
				object, err := strictjson.Object(changed)
				must(t, err)
				return strings.Replace(good, string(text), string(object), 1)
			}
			without := append(append([]strictjson.Member{}, members[:i]...), members[i+1:]...)
			try("without "+member.Name, whole(without))
			for _, value := range []string{`null`, `true`, `[]`, `{}`, `"1"`, `1.0`, `""`} {
				with := append(append([]strictjson.Member{}, without...), strictjson.Member{Name: member.Name, Value: []byte(value)})
				try(member.Name+" is "+value, whole(with))
			}
			folded := append(append([]strictjson.Member{}, without...),
				strictjson.Member{Name: strings.ToUpper(member.Name), Value: member.Value})
			try(member.Name+" in upper case", whole(folded))
		}
		extra := append(append([]strictjson.Member{}, members...), strictjson.Member{Name: "zero", Value: []byte("1")})
		object, err := strictjson.Object(extra)
		must(t, err)
		try("an extra claim", strings.Replace(good, string(text), string(object), 1))
	}
	try("white space", good+" ")
	try("trailing data", good+good)
	if got := s.save(t.Context(), []byte(saving("report.md", "content", d.keys[0].seal(grant.KindGrant.PayloadType(), good)))); got.Status != StatusOK {
		t.Errorf("the good one: %+v", got)
	}
}

// CHECKS 16, SPEC G1: valid from not_before, until and without expires, in whole seconds.
func TestSave_TimesAreExactAtTheSecond(t *testing.T) {
	at := func(second, nano int64) time.Time { return time.Unix(second, nano) }
	const from, until = 1_900_000_000, 1_900_000_060
	for _, test := range []struct {
		now  time.Time
		want string
	}{
		{at(from-1, 999_999_999), StatusRejected}, {at(from, 0), StatusOK}, {at(from+30, 0), StatusOK},
		{at(until-1, 0), StatusOK}, {at(until-1, 999_999_999), StatusOK}, {at(until, 0), StatusRejected}, {at(until+1, 0), StatusRejected},
	} {
		d := newDesk(t)
		s := d.server(func() time.Time { return test.now })
		wire := d.grant("a.md", "x", func(c *grant.Claims) { c.NotBefore, c.Expires = from, until })
		got := s.save(t.Context(), []byte(saving("a.md", "x", wire)))
		if got.Status != test.want {
			t.Errorf("at %v: %s %q, want %s", test.now.Sub(at(from, 0)), got.Status, got.Message, test.want)
		}
		if written := d.reports() != ""; written != (test.want == StatusOK) {
			t.Errorf("at %v: reports %q", test.now, d.reports())
		}
	}
}

// CHECKS 16: over the wire, with margins.
func TestSave_RefusesAnExpiredGrant(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	now := time.Now().Unix()
	for why, span := range map[string][2]int64{"expired": {now - 65, now - 5}, "not yet valid": {now + 5, now + 65}} {
		expect(t, c, ToolSave, saving("a.md", "x", d.grant("a.md", "x", func(c *grant.Claims) {
			c.NotBefore, c.Expires = span[0], span[1]
		})), StatusRejected)
		if d.reports() != "" {
			t.Errorf("%s: %s", why, d.reports())
		}
	}
	expect(t, c, ToolSave, saving("a.md", "x", d.grant("a.md", "x", func(c *grant.Claims) {
		c.NotBefore, c.Expires = now-5, now+30
	})), StatusOK)
}

// CHECKS 23: characters and bytes are limits of their own.
func TestSave_LimitsTheContent(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	for i, test := range []struct {
		content, want, message string
	}{
		{"", StatusRejected, refusedSave.Message},
		{"x", StatusOK, ""},
		{strings.Repeat("x", 8_000), StatusOK, ""},
		{strings.Repeat("x", 8_001), StatusRejected, refusedSave.Message},
		{strings.Repeat("证", 8_000), StatusOK, ""},
		{strings.Repeat("证", 8_001), StatusRejected, refusedSave.Message},
		{strings.Repeat("😀", 6_000), StatusOK, ""},
		{strings.Repeat("😀", 6_001), StatusRejected, tooLargeSave.Message},
	} {
		name := fmt.Sprintf("r%d.md", i)
		a := expect(t, c, ToolSave, saving(name, test.content, d.grant(name, test.content)), test.want)
		if test.message != "" && a.Message != test.message {
			t.Errorf("%d characters: %v", len([]rune(test.content)), a)
		}
		saved, err := os.ReadFile(d.path("reports", name))
		if (err == nil) != (test.want == StatusOK) || err == nil && string(saved) != test.content {
			t.Errorf("%s: %d bytes, %v", name, len(saved), err)
		}
	}
}

// CHECKS 24: the grant's own limits, in the same sentence as a wrong grant.
func TestSave_LimitsTheGrant(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	for _, arguments := range []string{
		`{"filename":"a.md","content":"x"}`, saving("a.md", "x", ""), saving("a.md", "x", strings.Repeat("A", 2_048)),
		saving("a.md", "x", strings.Repeat("A", 2_049)), saving("a.md", "x", strings.Repeat("A", 100_000)), saving("a.md", "x", "wrong"),
		`{"filename":"a.md","content":"x","grant":null}`, `{"filename":"a.md","content":"x","grant":["x"]}`,
	} {
		if a := expect(t, c, ToolSave, arguments, StatusRejected); a.Message != refusedSave.Message {
			t.Errorf("%.60s: %v", arguments, a)
		}
	}
}

// CHECKS 26, 41: the target is taken by an entry of any kind; mode 0600 under every umask.
func TestSave_NeverReplacesAndKeepsItsMode(t *testing.T) {
	for _, umask := range []string{"000", "077", "777"} {
		d := newDesk(t)
		at := func(name string) string { return d.path("reports", name) }
		must(t, os.WriteFile(at("file.md"), []byte("kept"), 0o644))
		must(t, os.Mkdir(at("folder.md"), 0o755))
		must(t, os.Symlink("file.md", at("link.md")))
		must(t, os.Symlink("gone.md", at("dangling.md")))
		before := d.reports()
		c := d.start(umaskEnv + "=" + umask)
		for i, name := range []string{"file.md", "folder.md", "link.md", "dangling.md"} {
			wire := d.grant(name, "new", call(fmt.Sprint("call-", i)))
			if a := expect(t, c, ToolSave, saving(name, "new", wire), StatusRejected); a.Message != takenSave.Message {
				t.Errorf("over %s: %v", name, a)
			}
			// The candidate stays spent: nothing else is tried with it.
			expect(t, c, ToolSave, saving(name, "new", wire), StatusResultUnknown)
		}
		if kept, err := os.ReadFile(at("file.md")); err != nil || string(kept) != "kept" || d.reports() != before {
			t.Errorf("reports: %q %v %s", kept, err, d.reports())
		}
		expect(t, c, ToolSave, saving("new.md", "new", d.grant("new.md", "new")), StatusOK)
		info, err := os.Stat(at("new.md"))
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("umask %s: mode %v", umask, info.Mode())
		}
	}
}

// CHECKS 27, SPEC D1.
func TestSave_KeepsSourcesAndReportsApart(t *testing.T) {
	d := newDesk(t)
	d.source("both.md", "the source")
	c := d.start()
	expect(t, c, ToolSave, saving("new.md", "report", d.grant("new.md", "report")), StatusOK)
	expect(t, c, ToolRead, `{"filename":"new.md"}`, StatusFailed)
	expect(t, c, ToolSave, saving("both.md", "the report", d.grant("both.md", "the report")), StatusOK)
	expect(t, c, ToolRead, `{"filename":"both.md"}`, StatusOK, `{"content":"the source","filename":"both.md"}`)
	if saved, err := os.ReadFile(d.path("reports", "both.md")); err != nil || string(saved) != "the report" {
		t.Errorf("report: %q %v", saved, err)
	}
}

// CHECKS 43: a spent grant has no second effect: at once, after a restart, after the file is gone, and when
// it has expired meanwhile.
func TestSave_SpentGrantHasNoSecondEffect(t *testing.T) {
	d := newDesk(t)
	wire := d.grant("a.md", "x")
	c := d.start()
	expect(t, c, ToolSave, saving("a.md", "x", wire), StatusOK)
	again := func(why string) {
		t.Helper()
		before := d.reports()
		if a := expect(t, c, ToolSave, saving("a.md", "x", wire), StatusResultUnknown); a.Message != spentSave.Message || d.reports() != before {
			t.Errorf("%s: %v, reports %q", why, a, d.reports())
		}
	}
	again("at once")
	must(t, os.Remove(d.path("reports", "a.md")))
	again("after the file was deleted")
	c.End()
	c = d.start()
	again("after a restart")
	// Signing twice never means writing twice: another grant for the same candidate.
	second := d.grant("a.md", "x", func(c *grant.Claims) { c.Grant, c.Approver = strings.Repeat("2", 32), "bob" })
	expect(t, c, ToolSave, saving("a.md", "x", second), StatusResultUnknown)
	// Ledger before times: a grant that already wrote is never called rejected.
	late := d.server(func() time.Time { return time.Now().Add(time.Hour) })
	if got := late.save(t.Context(), []byte(saving("a.md", "x", wire))); got.Status != StatusResultUnknown {
		t.Errorf("after expiry: %+v", got)
	}
	if d.reports() != "" {
		t.Errorf("reports %q", d.reports())
	}
}

// Two processes and many calls at once: one writes.
func TestSave_OneOfManyWrites(t *testing.T) {
	d := newDesk(t)
	wire := d.grant("a.md", "x")
	var mu sync.Mutex
	statuses := map[string]int{}
	var group sync.WaitGroup
	for range 2 {
		c := d.start()
		group.Go(func() {
			for range 8 {
				c.Request("tools/call", json.RawMessage(`{"name":"save_report","arguments":`+saving("a.md", "x", wire)+`}`))
			}
			for range 8 {
				m, _ := c.Next()
				var got struct{ StructuredContent answer }
				if err := json.Unmarshal(m.Result, &got); err != nil {
					t.Error(err)
				}
				mu.Lock()
				statuses[got.StructuredContent.Status]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if statuses[StatusOK] != 1 || statuses[StatusResultUnknown] != 15 {
		t.Errorf("%v", statuses)
	}
}

// SPEC D5: two approvers, different people, one candidate.
func TestSave_WantsTwoApproversWhereConfigured(t *testing.T) {
	d := newDesk(t)
	d.config.Approvers = 2
	c := d.start()
	by := func(name, id string) func(*grant.Claims) {
		return func(c *grant.Claims) { c.Approver, c.Grant = name, strings.Repeat(id, 32) }
	}
	alice, bob := d.grant("a.md", "x", by("alice", "1")), d.grant("a.md", "x", by("bob", "2"))
	for why, wire := range map[string]string{
		"one":             alice,
		"the same twice":  alice + "." + alice,
		"one person":      alice + "." + d.grant("a.md", "x", by("alice", "3")),
		"two candidates":  alice + "." + d.grant("a.md", "x", by("bob", "2"), call("call-2")),
		"one expired":     alice + "." + d.grant("a.md", "x", by("bob", "2"), func(c *grant.Claims) { c.Expires = c.NotBefore + 1 }),
		"three":           alice + "." + bob + "." + alice,
		"an empty second": alice + ".",
	} {
		expect(t, c, ToolSave, saving("a.md", "x", wire), StatusRejected)
		if d.reports() != "" {
			t.Fatalf("%s: written", why)
		}
	}
	expect(t, c, ToolSave, saving("a.md", "x", alice+"."+bob), StatusOK)
}

// SPEC D12a: settling voids an unused candidate for ever and tells about a spent one, each time the same.
func TestSettle_VoidsAndTells(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	unused := d.grant("a.md", "x", call("call-1"))
	for range 2 {
		expect(t, c, ToolSettle, settling("a.md", unused), StatusOK, `{"exists":false,"spent":false}`)
	}
	if a := expect(t, c, ToolSave, saving("a.md", "x", unused), StatusRejected); a.Message != voidSave.Message || d.reports() != "" {
		t.Errorf("save with a void grant: %v", a)
	}
	spent := d.grant("a.md", "x", call("call-2"))
	expect(t, c, ToolSave, saving("a.md", "x", spent), StatusOK)
	sum := sha256.Sum256([]byte("x"))
	there := `{"bytes":1,"exists":true,"sha256":"` + hex.EncodeToString(sum[:]) + `","spent":`
	for range 2 {
		expect(t, c, ToolSettle, settling("a.md", spent), StatusOK, there+`true}`)
	}
	expect(t, c, ToolSettle, settling("a.md", unused), StatusOK, there+`false}`)
	must(t, os.Remove(d.path("reports", "a.md")))
	expect(t, c, ToolSettle, settling("a.md", spent), StatusOK, `{"exists":false,"spent":true}`)
	expect(t, c, ToolSave, saving("a.md", "x", spent), StatusResultUnknown)
}

// SPEC D12a: expiry is ignored; anything else that is wrong voids nothing.
func TestSettle_RefusesAndVoidsNothing(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	wire := d.grant("a.md", "x")
	for why, arguments := range map[string]string{
		"another file":     settling("b.md", wire),
		"another scope":    settling("a.md", d.grant("a.md", "x", func(c *grant.Claims) { c.Candidate.Scope = "other" })),
		"another audience": settling("a.md", d.grant("a.md", "x", func(c *grant.Claims) { c.Candidate.Audience = "other" })),
		"another tool":     settling("a.md", d.grant("a.md", "x", func(c *grant.Claims) { c.Candidate.Tool = "other" })),
		"no file claim":    settling("a.md", d.grant("a.md", "x", func(c *grant.Claims) { c.Candidate.Fields = c.Candidate.Fields[:1] })),
		"no grant":         `{"filename":"a.md"}`,
		"extra":            `{"filename":"a.md","grant":"` + wire + `","content":"x"}`,
	} {
		if a := expect(t, c, ToolSettle, arguments, StatusRejected); a.Message != refusedSettle.Message {
			t.Errorf("%s: %v", why, a)
		}
	}
	for _, wire := range forgeries(t, d) {
		expect(t, c, ToolSettle, settling("report.md", wire), StatusRejected)
	}
	if left := names(t, d.config.Ledger); left != "" {
		t.Errorf("voided %s", left)
	}
	expired := d.grant("a.md", "x", func(c *grant.Claims) { c.NotBefore, c.Expires = 1, 2 })
	expect(t, c, ToolSettle, settling("a.md", expired), StatusOK, `{"exists":false,"spent":false}`)
	expect(t, c, ToolSave, saving("a.md", "x", wire), StatusRejected)
}

// SPEC D12a: settle waits for the save that holds the ledger; a holder that never ends is not waited for.
func TestSettle_WaitsUnderTheLockOfTheSave(t *testing.T) {
	d := newDesk(t)
	s := d.server(nil)
	s.lockWait = 2 * time.Second
	held, err := s.ledger.Lock(t.Context())
	must(t, err)
	settled := make(chan result)
	go func() { settled <- s.settle(t.Context(), []byte(settling("a.md", d.grant("a.md", "x")))) }()
	must(t, held.Spend(d.claims("a.md", "x").Candidate.ID))
	must(t, os.WriteFile(d.path("reports", "a.md"), []byte("x"), 0o600))
	held.Release()
	if got := <-settled; got.Status != StatusOK || !*got.Data.(reportData).Spent || !got.Data.(reportData).Exists {
		t.Errorf("%+v", got)
	}
	held, err = s.ledger.Lock(t.Context())
	must(t, err)
	defer held.Release()
	s.lockWait = 20 * time.Millisecond
	if got := s.settle(t.Context(), []byte(settling("a.md", d.grant("a.md", "x")))); got.Status != StatusFailed {
		t.Errorf("settle behind a holder that never ends: %+v", got)
	}
	fresh := d.grant("b.md", "x")
	if got := s.save(t.Context(), []byte(saving("b.md", "x", fresh))); got.Status != StatusResultUnknown || strings.Contains(d.reports(), "b.md") {
		t.Errorf("save behind a holder that never ends: %+v", got)
	}
}

// SPEC D5: a ledger that takes no entry: failed, nothing written. Run as nobody, because root writes anywhere.
func TestSave_LedgerThatCannotBeWrittenFails(t *testing.T) {
	d := newDesk(t)
	ledger := d.config.Ledger
	must(t, os.Chmod(ledger, 0o500))
	t.Cleanup(func() { must(t, os.Chmod(ledger, 0o700)) })
	asNobody(t, d, func(out []byte) {
		var got struct {
			Result struct{ StructuredContent answer }
		}
		must(t, json.Unmarshal(out, &got))
		if a := got.Result.StructuredContent; a.Status != StatusFailed || a.Message != failedSave.Message {
			t.Errorf("%v", a)
		}
		if d.reports() != "" {
			t.Errorf("reports %q", d.reports())
		}
	}, ToolSave, saving("a.md", "x", d.grant("a.md", "x")))
}

// asNobody makes one call of a server that runs as an ordinary user.
func asNobody(t *testing.T, d *desk, check func(reply []byte), tool, arguments string) {
	t.Helper()
	c := d.start() // for the form of a request only
	line := c.Line("1", "tools/call", json.RawMessage(`{"name":"`+tool+`","arguments":`+arguments+`}`))
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childEnv + "=" + d.file()}
	cmd.Stdin = strings.NewReader(line + "\n")
	if os.Geteuid() == 0 {
		const nobody = 65534
		open, err := os.MkdirTemp("", "sallyport-nobody-") // t.TempDir is closed to other users
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(open)) })
		must(t, os.Chmod(open, 0o755))
		code, err := os.ReadFile(os.Args[0])
		must(t, err)
		cmd.Path = filepath.Join(open, "server")
		must(t, os.WriteFile(cmd.Path, code, 0o755))
		old := d.dir
		must(t, os.Rename(old, filepath.Join(open, "case")))
		t.Cleanup(func() { must(t, os.Rename(filepath.Join(open, "case"), old)) })
		d.moveTo(filepath.Join(open, "case"))
		cmd.Env = []string{childEnv + "=" + d.file()}
		must(t, filepath.WalkDir(d.dir, func(path string, _ os.DirEntry, err error) error {
			must(t, err)
			return os.Chown(path, nobody, nobody)
		}))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	check(out)
}

// moveTo makes the desk that of another folder.
func (d *desk) moveTo(dir string) {
	d.dir, d.root = dir, filepath.Join(dir, "desk")
	d.config.Root, d.config.Ledger = d.root, filepath.Join(dir, "ledger")
}

// A report of every name that may be saved can be looked at; entries that may not be read fail.
func TestStatus_FailsOnWhatMayNotBeRead(t *testing.T) {
	d := newDesk(t)
	must(t, os.Symlink("gone", d.path("reports", "l.md")))
	must(t, syscall.Mkfifo(d.path("reports", "f.md"), 0o600))
	must(t, os.Mkdir(d.path("reports", "d.md"), 0o700))
	must(t, os.WriteFile(d.path("reports", "b.md"), make([]byte, workspace.MaxFileBytes+1), 0o600))
	must(t, os.WriteFile(d.path("reports", "n.md"), []byte{0xff}, 0o600))
	c := d.start()
	for _, name := range []string{"l.md", "f.md", "d.md", "b.md"} {
		if a := expect(t, c, ToolStatus, `{"filename":"`+name+`"}`, StatusFailed); a.Message != failedReport.Message {
			t.Errorf("%s: %v", name, a)
		}
	}
	sum := sha256.Sum256([]byte{0xff})
	expect(t, c, ToolStatus, `{"filename":"n.md"}`, StatusOK, `{"bytes":1,"exists":true,"sha256":"`+hex.EncodeToString(sum[:])+`"}`)
	expect(t, c, ToolStatus, `{"filename":"n.md","extra":1}`, StatusRejected)
}

func BenchmarkSave(b *testing.B) {
	d := newDesk(b)
	s := d.server(nil)
	content := strings.Repeat("x", 8_000)
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		name := fmt.Sprintf("r%d.md", n)
		arguments := []byte(saving(name, content, d.grant(name, content)))
		b.StartTimer()
		if got := s.save(b.Context(), arguments); got.Status != StatusOK {
			b.Fatal(got)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	d := newDesk(b)
	d.source("a.md", strings.Repeat("x", workspace.MaxFileBytes))
	c := d.start()
	for b.Loop() {
		c.Call(ToolRead, `{"filename":"a.md"}`)
	}
}

func BenchmarkSearch(b *testing.B) {
	d := newDesk(b)
	for i := range workspace.MaxEntries {
		d.source(fmt.Sprintf("f%02d.md", i), strings.Repeat("hay ", 1000))
	}
	c := d.start()
	for b.Loop() {
		c.Call(ToolSearch, `{"query":"needle"}`)
	}
}
