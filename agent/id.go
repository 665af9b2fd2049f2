package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

var runID = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// CheckRunID reports whether id can name a run.
func CheckRunID(id string) error {
	if !runID.MatchString(id) {
		return fmt.Errorf("run id %q: want 1 to 64 of a-z, 0-9 and -", id)
	}
	return nil
}

// CallID is the id of a call: of its run, of the proposed event's sequence and of
// its index within the turn. 32 hex digits.
func CallID(run string, seq int64, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "call\x00%s\x00%d\x00%d", run, seq, index))
	return hex.EncodeToString(sum[:16])
}

// DeliveryKey is the idempotency key of a signed decision: the hash of its bytes.
func DeliveryKey(signed string) string {
	sum := sha256.Sum256([]byte(signed))
	return hex.EncodeToString(sum[:])
}
