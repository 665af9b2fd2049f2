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
