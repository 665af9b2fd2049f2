package grant

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
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
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

var wireEncoding = base64.RawURLEncoding

// wire returns the base64url form of the envelope's canonical JSON.
func (e envelope) wire() string {
	data := append([]byte(nil), `{"payload":"`...)
	data = base64.StdEncoding.AppendEncode(data, e.Payload)
	data = appendText(data, `","payloadType":`, e.PayloadType)
	data = appendText(data, `,"signatures":[{"keyid":`, e.Signatures[0].KeyID)
	data = append(data, `,"sig":"`...)
	data = base64.StdEncoding.AppendEncode(data, e.Signatures[0].Sig)
	data = append(data, `"}]}`...)
	return wireEncoding.EncodeToString(data)
}

// wireLen is the length of a wire of this kind with a payload of this many bytes.
func wireLen(kind Kind, payload int) int {
	const frame = len(`{"payload":"","payloadType":"","signatures":[{"keyid":"","sig":""}]}`) +
		keyIDLen + 88 // a signature in base64
	return wireEncoding.EncodedLen(frame + base64.StdEncoding.EncodedLen(payload) + len(kind.PayloadType()))
}

// parseEnvelope accepts exactly what envelope.wire returns: it writes the
// envelope again and compares, as payloads are read.
func parseEnvelope(wire string) (envelope, error) {
	if len(wire) == 0 || len(wire) > MaxWire {
		return envelope{}, fmt.Errorf("%w: not 1 to %d characters", ErrMalformed, MaxWire)
	}
	data, err := wireEncoding.DecodeString(wire)
	if err != nil {
		return envelope{}, fmt.Errorf("%w: not base64url", ErrMalformed)
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return envelope{}, fmt.Errorf("%w: not an envelope", ErrMalformed)
	}
	if len(e.Signatures) != 1 {
		return envelope{}, fmt.Errorf("%w: not one signature", ErrMalformed)
	}
	if e.wire() != wire {
		return envelope{}, fmt.Errorf("%w: not the canonical form", ErrMalformed)
	}
	return e, nil
}

// preAuthentication is what is signed: DSSE's encoding of type and payload,
// each with its length, so that neither can be read as part of the other.
func preAuthentication(payloadType string, payload []byte) []byte {
	out := append([]byte(nil), "DSSEv1 "...)
	out = append(strconv.AppendInt(out, int64(len(payloadType)), 10), ' ')
	out = append(append(out, payloadType...), ' ')
	out = append(strconv.AppendInt(out, int64(len(payload)), 10), ' ')
	return append(out, payload...)
}
