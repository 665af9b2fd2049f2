package grant

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// digits stands for some digest.
func digits(text string) string { return digest([]byte(text)) }

// newKey makes the same key for the same name every time.
func newKey(t testing.TB, name string) PrivateKey {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	key, err := NewPrivateKey(name, strings.NewReader(string(seed[:])))
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
