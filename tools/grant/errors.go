package grant

import "errors"

// Why something signed is refused. Every error of an Open or Parse function
// wraps one of these, and none holds any part of what was opened.
var (
	// ErrMalformed: not the wire form, too long, or not in canonical form.
	ErrMalformed = errors.New("grant: malformed")
	// ErrKind: a well-formed envelope of another kind.
	ErrKind = errors.New("grant: signed as another kind")
	// ErrUnknownKey: no trusted key has the id that the envelope names.
	ErrUnknownKey = errors.New("grant: unknown key")
	// ErrSignature: the signature is not that key's over these bytes.
	ErrSignature = errors.New("grant: signature does not verify")
	// ErrClaims: rightly signed, but a claim is missing, extra, mistyped or
	// outside its limits, or the claims contradict each other.
	ErrClaims = errors.New("grant: claims refused")
	// ErrApprover: the claims name another approver than the key does.
	ErrApprover = errors.New("grant: approver is not the owner of the key")
	// ErrCount: another number of grants than needed.
	ErrCount = errors.New("grant: wrong number of grants")
	// ErrDisagree: grants that should be over one candidate are over several.
	ErrDisagree = errors.New("grant: grants are over different candidates")
	// ErrSameApprover: grants that should be by different people share a key or a name.
	ErrSameApprover = errors.New("grant: grants by the same approver")
	// ErrNotYetValid: the time is before not_before.
	ErrNotYetValid = errors.New("grant: not yet valid")
	// ErrExpired: the time is at or after expires.
	ErrExpired = errors.New("grant: expired")
	// ErrMismatch: argument bytes that are not those of the candidate.
	ErrMismatch = errors.New("grant: arguments are not those of the candidate")
	// ErrTooLarge: what would be signed does not fit into [MaxWire] characters.
	ErrTooLarge = errors.New("grant: too large to sign")
	// ErrArguments: argument bytes that are no canonical JSON object.
	ErrArguments = errors.New("grant: arguments are not a canonical JSON object")
)

// Why a key is refused.
var (
	// ErrKey: a key or its name that is malformed or unsafe.
	ErrKey = errors.New("grant: key refused")
	// ErrKeyFile: a private key file that is damaged, too open, linked or not the caller's.
	ErrKeyFile = errors.New("grant: key file refused")
	// ErrPassphrase: an encrypted private key and a wrong passphrase, or none.
	ErrPassphrase = errors.New("grant: wrong or missing passphrase")
)
