package grant

import (
	"crypto/ed25519"
	"fmt"
	"strings"
)

// Keys are the public keys that are trusted to sign.
type Keys []PublicKey

// Open verifies one wire and returns the signed bytes and the key that signed
// them. The order is: size and form ([ErrMalformed]), kind ([ErrKind]), known key
// ([ErrUnknownKey]), signature ([ErrSignature]). The payload is not parsed.
func (k Keys) Open(kind Kind, wire string) (payload []byte, by PublicKey, err error) {
	e, err := parseEnvelope(wire)
	if err != nil {
		return nil, PublicKey{}, err
	}
	if e.PayloadType != kind.PayloadType() {
		return nil, PublicKey{}, ErrKind
	}
	signedBytes, refusal := preAuthentication(e.PayloadType, e.Payload), ErrUnknownKey
	for _, key := range k {
		if key.checkBytes() != nil || key.ID() != e.KeyID {
			continue
		}
		if ed25519.Verify(key.Key, signedBytes, e.Sig) {
			return e.Payload, key, nil
		}
		refusal = ErrSignature // another key may have the same short id
	}
	return nil, PublicKey{}, refusal
}

// OpenGrant verifies and reads a grant, and requires that the approver it names
// owns the key ([ErrApprover]). Time, ledger and the equality of the claims with
// the call at hand are left to the caller.
func (k Keys) OpenGrant(wire string) (Claims, PublicKey, error) {
	return open[Claims](k, wire)
}

// OpenEdit verifies and reads an edit as [Keys.OpenGrant] does a grant.
func (k Keys) OpenEdit(wire string) (Edit, PublicKey, error) {
	return open[Edit](k, wire)
}

// OpenRefusal verifies and reads a refusal as [Keys.OpenGrant] does a grant.
func (k Keys) OpenRefusal(wire string) (Refusal, PublicKey, error) {
	return open[Refusal](k, wire)
}

// OpenStatement verifies and reads a statement as [Keys.OpenGrant] does a grant.
func (k Keys) OpenStatement(wire string) (Statement, PublicKey, error) {
	return open[Statement](k, wire)
}

func open[T signed](k Keys, wire string) (T, PublicKey, error) {
	var zero T
	payload, by, err := k.Open(zero.kind(), wire)
	if err != nil {
		return zero, PublicKey{}, err
	}
	v, err := parse[T](payload)
	if err != nil {
		return zero, PublicKey{}, err
	}
	if v.approver() != by.Name {
		return zero, PublicKey{}, ErrApprover
	}
	return v, by, nil
}

// OpenGrants opens exactly need grants joined by "." ([ErrCount]), each as
// [Keys.OpenGrant] does. They must be over equal candidates ([ErrDisagree]), by
// different keys and under different names ([ErrSameApprover]): one person with
// an old and a new key is one approver. The claims are in the order of the wire.
func (k Keys) OpenGrants(wire string, need int) ([]Claims, error) {
	if need < 1 {
		return nil, fmt.Errorf("%w: at least one is needed", ErrCount)
	}
	wires := strings.SplitN(wire, ".", need+1)
	if len(wires) != need {
		return nil, ErrCount
	}
	all := make([]Claims, 0, need)
	owners := make(Keys, 0, need)
	for _, one := range wires {
		claims, by, err := k.OpenGrant(one)
		if err != nil {
			return nil, err
		}
		if owners.share(by) {
			return nil, ErrSameApprover
		}
		if len(all) > 0 && !all[0].Candidate.Equal(claims.Candidate) {
			return nil, ErrDisagree
		}
		all, owners = append(all, claims), append(owners, by)
	}
	return all, nil
}

// share reports whether one of the keys has the other's bytes or name.
func (k Keys) share(other PublicKey) bool {
	for _, key := range k {
		if key.Key.Equal(other.Key) || key.Name == other.Name {
			return true
		}
	}
	return false
}
