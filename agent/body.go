package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// BodyRef names content that lies outside the journal, by its hash. The zero value
// names nothing. Two equal bodies of one run have one reference.
type BodyRef struct {
	SHA256 string `json:"sha256"` // 64 lower-case hex digits
	Bytes  int64  `json:"bytes"`
}

// IsZero reports whether the reference names nothing.
func (r BodyRef) IsZero() bool { return r.SHA256 == "" }

// String is the form in which a reference is shown and sent: sha256:HEX#0-BYTES.
func (r BodyRef) String() string {
	if r.IsZero() {
		return ""
	}
	return fmt.Sprintf("sha256:%s#0-%d", r.SHA256, r.Bytes)
}

// Body is content with its reference. A body is durable no later than the entry
// that names it.
type Body struct {
	Ref  BodyRef
	Data []byte
}

// NewBody hashes data, which it does not copy.
func NewBody(data []byte) Body {
	sum := sha256.Sum256(data)
	return Body{Ref: BodyRef{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data))}, Data: data}
}

// named are the bodies that an event names; some may be zero.
func named(p payload) []BodyRef {
	switch p := p.(type) {
	case Spec:
		return []BodyRef{p.Task}
	case Turned:
		return p.bodies()
	case TurnRefused:
		return []BodyRef{p.Message}
	case Checked:
		return []BodyRef{p.Arguments}
	case Returned:
		return []BodyRef{p.Arguments, p.Body}
	case Observed:
		return []BodyRef{p.Message, p.Evidence, p.ReadBack}
	case Verified:
		return []BodyRef{p.Evidence}
	case Edit:
		return []BodyRef{p.Arguments}
	case Substitute:
		return p.bodies()
	}
	return nil // the others name no content
}

func (t Turned) bodies() []BodyRef {
	refs := []BodyRef{t.Message}
	for _, c := range t.Calls {
		refs = append(refs, c.Body)
	}
	return refs
}
