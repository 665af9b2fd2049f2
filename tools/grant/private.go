package grant

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
)

// PrivateKey signs in the name of one approver. It formats as its name and id
// only, whatever the verb, so that it cannot slip into a log.
type PrivateKey struct {
	name string
	// A function, since fmt prints the unexported fields of a struct without asking
	// their methods, through pointers too: of a function it can show an address only.
	secret func() ed25519.PrivateKey
}

func newPrivateKey(name string, seed []byte) PrivateKey {
	secret := ed25519.NewKeyFromSeed(seed)
	return PrivateKey{name: name, secret: func() ed25519.PrivateKey { return secret }}
}

// NewPrivateKey makes a key from 32 bytes of random, or of the system's source if
// random is nil. It returns [ErrKey] for a bad name.
func NewPrivateKey(name string, random io.Reader) (PrivateKey, error) {
	if !isName(name) {
		return PrivateKey{}, fmt.Errorf("new private key: %w: the name must be 1 to %d of letters, digits and ._@-",
			ErrKey, maxNameLen)
	}
	if random == nil {
		random = rand.Reader
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return PrivateKey{}, fmt.Errorf("new private key %q: read the random source: %w", name, err)
	}
	return newPrivateKey(name, seed), nil
}

// Public returns the key that others verify with. It has no bytes for the zero
// PrivateKey.
func (k PrivateKey) Public() PublicKey {
	if k.secret == nil {
		return PublicKey{Name: k.name}
	}
	public, _ := k.secret().Public().(ed25519.PublicKey) // by the documentation of Public
	return PublicKey{Name: k.name, Key: public}
}

// Format writes name and id, never the key.
func (k PrivateKey) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "private key %s (%s)", k.name, k.Public().ID())
}
