package grant

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// MaxWire bounds the characters of one signed value on the wire (SPEC D5). Two
// grants joined by "." have at most 2 × MaxWire + 1.
const MaxWire = 2048

// Kind is what a signature is for. Each kind is signed under a payload type of
// its own.
type Kind string

// The kinds.
const (
	KindGrant     Kind = "grant"     // Claims
	KindEdit      Kind = "edit"      // Edit
	KindRefusal   Kind = "refusal"   // Refusal
	KindStatement Kind = "statement" // Statement
)

// PayloadType is the media type that is signed together with the payload.
func (k Kind) PayloadType() string { return "application/vnd.sallyport." + string(k) + ".v1+json" }

// envelope is a DSSE envelope with exactly one signature.
type envelope struct {
	Payload     []byte
	PayloadType string
	KeyID       string
	Sig         []byte
}

// The texts between the values of an envelope's canonical JSON.
const (
	beforePayload = `{"payload":"`
	beforeType    = `","payloadType":"`
	beforeKeyID   = `","signatures":[{"keyid":"`
	beforeSig     = `","sig":"`
	afterSig      = `"}]}`
)

var wireEncoding = base64.RawURLEncoding

// wire returns the base64url form of the envelope's canonical JSON. Neither the
// type nor the key id holds a character that JSON escapes.
func (e envelope) wire() string {
	data := append(make([]byte, 0, MaxWire), beforePayload...)
	data = base64.StdEncoding.AppendEncode(data, e.Payload)
	data = append(append(data, beforeType...), e.PayloadType...)
	data = append(append(data, beforeKeyID...), e.KeyID...)
	data = append(data, beforeSig...)
	data = base64.StdEncoding.AppendEncode(data, e.Sig)
	return wireEncoding.EncodeToString(append(data, afterSig...))
}

// wireLen is the length of a wire of this kind with a payload of this many bytes.
func wireLen(kind Kind, payload int) int {
	const frame = len(beforePayload+beforeType+beforeKeyID+beforeSig+afterSig) + keyIDLen + 88 // a signature in base64
	return wireEncoding.EncodedLen(frame + base64.StdEncoding.EncodedLen(payload) + len(kind.PayloadType()))
}

// parseEnvelope accepts exactly what envelope.wire returns for a type of ours
// and a key id of its form. It writes again what it read and compares, so that
// base64 has one spelling only.
func parseEnvelope(wire string) (envelope, error) {
	if len(wire) == 0 || len(wire) > MaxWire {
		return envelope{}, fmt.Errorf("%w: not 1 to %d characters", ErrMalformed, MaxWire)
	}
	data, err := wireEncoding.DecodeString(wire)
	if err != nil {
		return envelope{}, fmt.Errorf("%w: not base64url", ErrMalformed)
	}
	e, ok := cutEnvelope(string(data))
	if !ok || e.wire() != wire {
		return envelope{}, fmt.Errorf("%w: not a canonical envelope", ErrMalformed)
	}
	return e, nil
}

// cutEnvelope takes the JSON apart at the fixed texts between its values.
func cutEnvelope(text string) (envelope, bool) {
	rest, ok := strings.CutPrefix(text, beforePayload)
	payload, rest, ok1 := strings.Cut(rest, beforeType)
	payloadType, rest, ok2 := strings.Cut(rest, beforeKeyID)
	keyID, rest, ok3 := strings.Cut(rest, beforeSig)
	sig, ok4 := strings.CutSuffix(rest, afterSig)
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 || !isHex(keyID, keyIDLen) || !isPayloadType(payloadType) {
		return envelope{}, false
	}
	e := envelope{PayloadType: payloadType, KeyID: keyID}
	var err1, err2 error
	e.Payload, err1 = base64.StdEncoding.DecodeString(payload)
	e.Sig, err2 = base64.StdEncoding.DecodeString(sig)
	return e, err1 == nil && err2 == nil
}

// isPayloadType reports whether the text is a media type as ours are: lower-case
// letters, digits and "./+-".
func isPayloadType(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && !strings.ContainsRune("./+-", rune(c)) {
			return false
		}
	}
	return text != ""
}

// preAuthentication is what is signed: DSSE's encoding of type and payload,
// each with its length, so that neither can be read as part of the other.
func preAuthentication(payloadType string, payload []byte) []byte {
	out := append(make([]byte, 0, len(payload)+len(payloadType)+32), "DSSEv1 "...)
	out = append(strconv.AppendInt(out, int64(len(payloadType)), 10), ' ')
	out = append(append(out, payloadType...), ' ')
	out = append(strconv.AppendInt(out, int64(len(payload)), 10), ' ')
	return append(out, payload...)
}
