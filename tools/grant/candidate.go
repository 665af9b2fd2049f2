package grant

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Limits on the parts of what is signed, in bytes of UTF-8.
const (
	MaxRun       = 64  // of a run id, letters a to z, digits and '-'
	MaxCall      = 64  // of a call id
	MaxTool      = 128 // of a tool's own name
	MaxAudience  = 256 // of the audience
	MaxScope     = 256 // of the scope
	MaxFieldName = 256 // of the name of one argument
)

// Field is one top-level argument of a call, by digest.
type Field struct {
	// Name is the argument's name.
	Name string `json:"name"`
	// SHA256 is lower-case hex: for a JSON string of its text as UTF-8, which is
	// what a file of that content has; for any other value of its canonical JSON.
	SHA256 string `json:"sha256"`
	// Bytes is the size of what SHA256 is taken of.
	Bytes int64 `json:"bytes"`
}

// Candidate is one call that waits for a person, named exactly. Two candidates
// are about the same effect exactly if they are [Candidate.Equal].
type Candidate struct {
	ID         string  `json:"id"`         // CandidateID of run, call, arguments and definition
	Audience   string  `json:"audience"`   // server and workspace that may act on a grant
	Scope      string  `json:"scope"`      // the server's scope, from trusted configuration
	Run        string  `json:"run"`        // the run that proposed the call
	Tool       string  `json:"tool"`       // the server's own name of the tool, without prefix
	Call       string  `json:"call"`       // the Host's id of the call
	Definition string  `json:"definition"` // hex SHA-256 of the tool's canonical definition
	Arguments  string  `json:"arguments"`  // hex SHA-256 of the canonical arguments, without the grant
	Bytes      int64   `json:"bytes"`      // size of these arguments
	Fields     []Field `json:"fields"`     // the arguments one by one, sorted by name
	Head       string  `json:"head"`       // hex hash of the journal entry before the candidate
}

// CandidateID returns the id of a candidate: the hex SHA-256 over a fixed label
// and the four parts, each preceded by its length in bytes (64 bits, big-endian),
// so that no two different quadruples are hashed alike.
func CandidateID(run, call, arguments, definition string) string {
	h := sha256.New()
	for _, part := range []string{"sallyport.candidate.v1", run, call, arguments, definition} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:]) // a hash never fails
		_, _ = h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Bind returns c with Arguments, Bytes, Fields and ID set for these argument
// bytes, checked. The bytes are a canonical JSON object without the grant field.
// Fields holds the arguments called names, or all if none is given. Since a grant
// has at most [MaxWire] characters, only two or three fields fit; with more
// arguments name those that a settling tool compares, and leave the rest to the
// digest of the whole. It returns [ErrArguments], [ErrTooLarge] or [ErrClaims].
func (c Candidate) Bind(arguments []byte, names ...string) (Candidate, error) {
	fields, err := Fields(arguments)
	if err != nil {
		return Candidate{}, err
	}
	if len(names) > 0 {
		fields = slices.DeleteFunc(fields, func(f Field) bool { return !slices.Contains(names, f.Name) })
	}
	c.Fields = fields
	c.Arguments, c.Bytes = digest(arguments), int64(len(arguments))
	c.ID = CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
	if err := c.Check(); err != nil {
		return Candidate{}, err
	}
	return c, nil
}

// Matches reports whether arguments are the bytes that the candidate stands for:
// digest, size, and every field that it lists. It returns [ErrArguments] or
// [ErrMismatch].
func (c Candidate) Matches(arguments []byte) error {
	fields, err := Fields(arguments)
	if err != nil {
		return err
	}
	if c.Arguments != digest(arguments) || c.Bytes != int64(len(arguments)) {
		return ErrMismatch
	}
	for _, f := range c.Fields {
		if !slices.Contains(fields, f) {
			return ErrMismatch
		}
	}
	return nil
}

// Check reports whether the candidate is one that could have been proposed: its
// id recomputes, its digests are 64 lower-case hex characters, its names are
// printable and within their limits, sizes are not negative, fields are sorted and
// distinct, and it fits into a grant ([ErrTooLarge]). All else is [ErrClaims].
func (c Candidate) Check() error {
	switch {
	case !isRun(c.Run):
		return refused("run")
	case !isLabel(c.Call, MaxCall):
		return refused("call")
	case !isLabel(c.Tool, MaxTool):
		return refused("tool")
	case !isLabel(c.Audience, MaxAudience):
		return refused("audience")
	case !isLabel(c.Scope, MaxScope):
		return refused("scope")
	case !isHex(c.Definition, 64):
		return refused("definition")
	case !isHex(c.Arguments, 64):
		return refused("arguments")
	case !isHex(c.Head, 64):
		return refused("head")
	case c.Bytes < 0:
		return refused("bytes")
	case c.ID != CandidateID(c.Run, c.Call, c.Arguments, c.Definition):
		return refused("id")
	}
	if err := checkFields(c.Fields); err != nil {
		return err
	}
	if !c.Fits("a") {
		return ErrTooLarge
	}
	return nil
}

// Fits reports whether any grant over c by an approver of this name has at most
// [MaxWire] characters. Ask before a person is asked: [SignGrant] refuses what
// does not fit.
func (c Candidate) Fits(approver string) bool {
	longest := Claims{Candidate: c, Grant: grantOfZeros, Approver: approver, NotBefore: maxTime, Expires: maxTime}
	return wireLen(KindGrant, len(longest.payload())) <= MaxWire
}

const grantOfZeros = "00000000000000000000000000000000"

// Equal reports whether both candidates agree in every claim.
func (c Candidate) Equal(o Candidate) bool {
	fields := slices.Equal(c.Fields, o.Fields)
	c.Fields, o.Fields = nil, nil
	return fields && bytes.Equal(c.append(nil), o.append(nil))
}

func checkFields(fields []Field) error {
	for i, f := range fields {
		switch {
		case len(f.Name) > MaxFieldName || !utf8.ValidString(f.Name):
			return refused("name of a field")
		case !isHex(f.SHA256, 64):
			return refused("sha256 of a field")
		case f.Bytes < 0:
			return refused("bytes of a field")
		case i > 0 && fields[i-1].Name >= f.Name:
			return refused("order of the fields")
		}
	}
	return nil
}

// refused names the claim that is wrong; claim is always one of our own words.
func refused(claim string) error { return fmt.Errorf("%w: %s", ErrClaims, claim) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func isHex(s string, size int) bool {
	if len(s) != size {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isRun(s string) bool {
	if len(s) == 0 || len(s) > MaxRun {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return true
}

// isLabel reports whether s is 1 to limit bytes of visible text: a person reads
// it beside the question, so nothing in it may move the cursor or hide.
func isLabel(s string, limit int) bool {
	if len(s) == 0 || len(s) > limit || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
