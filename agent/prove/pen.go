package prove

import (
	"fmt"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// pen signs for the approvers of a walk, and signs nothing twice: many states have the
// same candidate, and signing is what takes time.
type pen map[string]string

// signed is what was signed under the key, or what sign makes. What cannot be signed at
// all gives a text that is no signature, which Step then refuses.
func (p pen) signed(key string, sign func() (string, error)) string {
	wire, ok := p[key]
	if !ok {
		var err error
		if wire, err = sign(); err != nil {
			wire = "unsignable"
		}
		p[key] = wire
	}
	return wire
}

// grant signs a candidate at a time, for as many seconds.
func (p pen) grant(s signer, c grant.Candidate, at time.Time, use int64) string {
	key := strings.Join([]string{"grant", s.id, c.ID, c.Head, c.Audience, c.Scope, c.Tool, fmt.Sprint(c.Bytes, len(c.Fields), at.Unix(), use)}, "\x00")
	return p.signed(key, func() (string, error) {
		return grant.SignGrant(s.key, grant.Claims{
			Candidate: c, Grant: fmt.Sprintf("%032x", at.Unix()), Approver: s.name,
			NotBefore: at.Unix() - agent.GrantSkew, Expires: at.Unix() + use,
		})
	})
}

func (p pen) refusal(s signer, c grant.Candidate) string {
	return p.signed(strings.Join([]string{"refusal", s.id, c.Run, c.ID, c.Head}, "\x00"), func() (string, error) {
		return grant.SignRefusal(s.key, grant.Refusal{Candidate: c.ID, Run: c.Run, Approver: s.name, Head: c.Head, Time: epoch.Unix()})
	})
}

// edit signs that argsEdited takes the place of the candidate's arguments.
func (p pen) edit(s signer, run, candidate, head string) string {
	return p.signed(strings.Join([]string{"edit", s.id, run, candidate, head}, "\x00"), func() (string, error) {
		return grant.SignEdit(s.key, grant.Edit{
			Candidate: candidate, Run: run, Arguments: argsEdited.SHA256, Bytes: argsEdited.Bytes,
			Approver: s.name, Head: head, Time: epoch.Unix(),
		})
	})
}

func (p pen) statement(s signer, run, call, verdict string) string {
	return p.signed(strings.Join([]string{"statement", s.id, run, call, verdict}, "\x00"), func() (string, error) {
		return grant.SignStatement(s.key, grant.Statement{
			Call: call, Candidate: digest("any"), Run: run, Verdict: verdict, Approver: s.name,
			Head: digest("any"), Time: epoch.Unix(),
		})
	})
}
