package grant

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
)

// digits stands for some digest.
func digits(text string) string { return digest([]byte(text)) }

// newKey makes the same key for the same name every time.
func newKey(t testing.TB, name string) PrivateKey {
	t.Helper()
	return keyFrom(t, name, name)
}

// keyFrom makes a key that depends on the seed and goes by the name.
func keyFrom(t testing.TB, name, seed string) PrivateKey {
	t.Helper()
	bytes := sha256.Sum256([]byte(seed))
	key, err := NewPrivateKey(name, strings.NewReader(string(bytes[:])))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

const savedArguments = `{"content":"# Findings\n","filename":"report.md"}`

// savedReport is the candidate of a save_report call.
func savedReport(t testing.TB) Candidate {
	t.Helper()
	c, err := Candidate{
		Audience: "docs:/home/anna/desk", Scope: "desk/reading", Run: "run-7f3a", Tool: "save_report",
		Call: digits("call"), Definition: digits("definition"), Head: digits("head"),
	}.Bind([]byte(savedArguments))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func claimsBy(t testing.TB, key PrivateKey) Claims {
	t.Helper()
	return Claims{
		Candidate: savedReport(t), Grant: digits("grant")[:32], Approver: key.name,
		NotBefore: 1_800_000_000, Expires: 1_800_000_660,
	}
}

func editBy(t testing.TB, key PrivateKey) Edit {
	t.Helper()
	return Edit{
		Candidate: savedReport(t).ID, Run: "run-7f3a", Arguments: digits("new arguments"), Bytes: 41,
		Approver: key.name, Head: digits("head"), Time: 1_800_000_060,
	}
}

func refusalBy(t testing.TB, key PrivateKey) Refusal {
	t.Helper()
	return Refusal{
		Candidate: savedReport(t).ID, Run: "run-7f3a", Approver: key.name, Head: digits("head"), Time: 1_800_000_060,
	}
}

func statementBy(t testing.TB, key PrivateKey) Statement {
	t.Helper()
	return Statement{
		Call: digits("call"), Candidate: savedReport(t).ID, Run: "run-7f3a", Verdict: VerdictApplied,
		Approver: key.name, Head: digits("head"), Time: 1_800_000_060,
	}
}

// oneOfEachKind is a value of every kind, ready to be signed by key.
func oneOfEachKind(t testing.TB, key PrivateKey) []signed {
	t.Helper()
	return []signed{claimsBy(t, key), editBy(t, key), refusalBy(t, key), statementBy(t, key)}
}

func mustSign(t testing.TB, key PrivateKey, v signed) string {
	t.Helper()
	wire, err := sign(key, v)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// openAny opens a wire as the kind of v and reads it.
func openAny(keys Keys, v signed, wire string) (opened signed, err error) {
	switch v.(type) {
	case Claims:
		opened, _, err = keys.OpenGrant(wire)
	case Edit:
		opened, _, err = keys.OpenEdit(wire)
	case Refusal:
		opened, _, err = keys.OpenRefusal(wire)
	case Statement:
		opened, _, err = keys.OpenStatement(wire)
	}
	return opened, err
}

// mustBe fails the test unless err is want.
func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("got %v, want %v", err, want)
	}
}
