package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// epoch is when the runs of a proof begin. Only differences matter.
var epoch = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// digest names something by a hash that nothing but equality is asked of.
func digest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:])
}

func body(of string) agent.BodyRef { return agent.NewBody([]byte(of)).Ref }

// The argument bytes of a walk: what the model asked for, what a person made of it,
// and what nobody asked for.
var (
	argsModel  = body(`{"n":1}`)
	argsEdited = body(`{"n":22}`)
	argsOther  = body(`{"n":333}`)
)

// abstract is the spec without what a proof cannot depend on: task, configuration, model
// label, and definitions, which are digests by name.
func abstract(s agent.Spec) agent.Spec {
	s.Run, s.Rules, s.Task, s.Config, s.Model = "proof", agent.Rules, body("task"), digest("config"), ""
	s.Tools = slices.Clone(s.Tools)
	for i := range s.Tools {
		s.Tools[i].Definition = digest("definition of " + s.Tools[i].Name)
	}
	s.Servers = slices.Clone(s.Servers)
	for i := range s.Servers {
		srv := &s.Servers[i]
		if srv.Audience == "" {
			srv.Audience = srv.Prefix
		}
		if srv.Scope == "" {
			srv.Scope = srv.Prefix
		}
	}
	return s
}

// signer is one approver of a walk, with a key that was made for it.
type signer struct {
	key   grant.PrivateKey
	id    string
	name  string
	class int // approvers of one class differ in name and key only
	roles []string
	until time.Time // zero is for ever
}

// signers makes keys in the approvers' names. need is the most signatures that a tool of
// the walk takes: of each class that many and one more are enough, since whoever signs
// third of two does nothing new. Where several must sign, the first gets a second key:
// one person with an old and a new key is one approver.
func signers(spec agent.Spec, need int, until time.Time) ([]signer, error) {
	var all []signer
	count := map[int]int{}
	add := func(a agent.Approver, name string) error {
		key, err := grant.NewPrivateKey(name, nil)
		if err != nil {
			return fmt.Errorf("make a key for %q: %w", name, err)
		}
		s := signer{key: key, id: key.Public().ID(), name: name, roles: a.Roles}
		if !a.NotAfter.IsZero() {
			s.until = until
		}
		s.class = slices.IndexFunc(all, func(o signer) bool {
			return slices.Equal(o.roles, s.roles) && o.until.Equal(s.until)
		})
		if s.class < 0 {
			s.class = len(all)
		} else {
			s.class = all[s.class].class
		}
		if count[s.class]++; count[s.class] <= need+1 {
			all = append(all, s)
		}
		return nil
	}
	for _, a := range spec.Approvers {
		pub, err := grant.ParsePublicKey(a.Key)
		if err != nil {
			return nil, fmt.Errorf("approver: %w", err)
		}
		if err := add(a, pub.Name); err != nil {
			return nil, err
		}
	}
	if need > 1 && len(all) > 0 {
		twin := all[0]
		key, err := grant.NewPrivateKey(twin.name, nil)
		if err != nil {
			return nil, fmt.Errorf("make a second key for %q: %w", twin.name, err)
		}
		twin.key, twin.id = key, key.Public().ID()
		all = append(all, twin)
	}
	return all, nil
}

// approver is the signer as a run pins it.
func (s signer) approver() agent.Approver {
	return agent.Approver{Key: s.key.Public().String(), Roles: s.roles, NotAfter: s.until}
}

// jump is how far a walk lets time pass at once.
type jump struct {
	by   time.Duration
	says string
}

// able are the names of the approvers who may sign for a tool.
func (p *proof) able(t agent.Tool) []string {
	names := []string{}
	for _, a := range p.options.Spec.Approvers {
		pub, err := grant.ParsePublicKey(a.Key)
		if err != nil || t.Role != "" && !slices.Contains(a.Roles, t.Role) || slices.Contains(names, pub.Name) {
			continue
		}
		names = append(names, pub.Name)
	}
	return names
}
