package grant_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/tools/grant"
)

// candidateOf is what the Host makes of a proposed call.
func candidateOf(arguments string) (grant.Candidate, error) {
	return grant.Candidate{
		Audience: "docs:desk", Scope: "desk/reading", Run: "run-1", Tool: "save_report", Call: "call-1",
		Definition: strings.Repeat("d", 64), Head: strings.Repeat("e", 64),
	}.Bind([]byte(arguments))
}

// An approver signs a candidate; a server that knows the approver's public key
// opens the grant and compares it with the bytes that it was called with.
func Example() {
	anna, err := grant.NewPrivateKey("anna", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	arguments := `{"content":"# Findings\n","filename":"report.md"}`
	candidate, err := candidateOf(arguments)
	if err != nil {
		fmt.Println(err)
		return
	}
	signed := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	wire, err := grant.SignGrant(anna, grant.Claims{
		Candidate: candidate, Grant: strings.Repeat("0", 32), Approver: "anna",
		NotBefore: signed.Unix() - 60, Expires: signed.Unix() + 600,
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	trusted := grant.Keys{anna.Public()}
	claims, by, err := trusted.OpenGrant(wire)
	fmt.Println(by.Name, claims.Candidate.Tool, err)
	fmt.Println(claims.CheckTime(signed), claims.CheckTime(signed.Add(10*time.Minute)))
	fmt.Println(claims.Candidate.Matches([]byte(arguments)))
	fmt.Println(claims.Candidate.Matches([]byte(`{"content":"# Lies\n","filename":"report.md"}`)))
	// Output:
	// anna save_report <nil>
	// <nil> grant: expired
	// <nil>
	// grant: arguments are not those of the candidate
}

// A destructive call needs two people; one person with two grants is not two.
func ExampleKeys_OpenGrants() {
	anna, err1 := grant.NewPrivateKey("anna", nil)
	berta, err2 := grant.NewPrivateKey("berta", nil)
	candidate, err3 := candidateOf(`{"filename":"report.md"}`)
	if err := errors.Join(err1, err2, err3); err != nil {
		fmt.Println(err)
		return
	}
	sign := func(k grant.PrivateKey) string {
		wire, err := grant.SignGrant(k, grant.Claims{
			Candidate: candidate, Grant: strings.Repeat("0", 32), Approver: k.Public().Name, NotBefore: 1, Expires: 2,
		})
		if err != nil {
			fmt.Println(err)
		}
		return wire
	}
	trusted := grant.Keys{anna.Public(), berta.Public()}
	both, err := trusted.OpenGrants(sign(anna)+"."+sign(berta), 2)
	fmt.Println(len(both), err)
	_, err = trusted.OpenGrants(sign(anna)+"."+sign(anna), 2)
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// grant: grants by the same approver
}

// A private key is kept in a file that only its owner can read.
func ExampleLoadPrivateKey() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "anna.key")
	anna, err1 := grant.NewPrivateKey("anna", nil)
	err2 := anna.Save(path, nil) // the user asked for a key without passphrase
	again, err3 := grant.LoadPrivateKey(path, nil)
	fmt.Println(again.Public().String() == anna.Public().String(), errors.Join(err1, err2, err3))

	err4 := os.Chmod(path, 0o644)
	_, err = grant.LoadPrivateKey(path, nil)
	fmt.Println(errors.Is(err, grant.ErrKeyFile), err4)
	// Output:
	// true <nil>
	// true <nil>
}
