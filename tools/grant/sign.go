package grant

import (
	"crypto/ed25519"
	"fmt"
)

// SignGrant signs claims as a grant and returns its wire form. The claims must
// pass every check that opening makes, and name the key as approver: it returns
// [ErrClaims], [ErrApprover], [ErrTooLarge] or [ErrKey].
func SignGrant(k PrivateKey, c Claims) (string, error) { return sign(k, c) }

// SignEdit signs an edit; errors as for [SignGrant].
func SignEdit(k PrivateKey, e Edit) (string, error) { return sign(k, e) }

// SignRefusal signs a refusal; errors as for [SignGrant].
func SignRefusal(k PrivateKey, r Refusal) (string, error) { return sign(k, r) }

// SignStatement signs a statement; errors as for [SignGrant].
func SignStatement(k PrivateKey, s Statement) (string, error) { return sign(k, s) }

func sign(k PrivateKey, v signed) (string, error) {
	if k.secret == nil {
		return "", fmt.Errorf("sign %s: %w: no private key", v.kind(), ErrKey)
	}
	if err := v.check(); err != nil {
		return "", fmt.Errorf("sign %s: %w", v.kind(), err)
	}
	if v.approver() != k.name {
		return "", fmt.Errorf("sign %s: %w", v.kind(), ErrApprover)
	}
	wire := seal(k, v.kind().PayloadType(), v.payload())
	if len(wire) > MaxWire {
		return "", fmt.Errorf("sign %s: %w", v.kind(), ErrTooLarge)
	}
	return wire, nil
}

// seal signs any bytes as any type. What may be signed is sign's business.
func seal(k PrivateKey, payloadType string, payload []byte) string {
	return envelope{
		Payload:     payload,
		PayloadType: payloadType,
		KeyID:       k.Public().ID(),
		Sig:         ed25519.Sign(k.secret(), preAuthentication(payloadType, payload)),
	}.wire()
}
