package grant

import (
	"testing"
	"time"
)

func TestOpenGrant_ReturnsWhatWasSigned(t *testing.T) {
	key := newKey(t, "anna")
	want := claimsBy(t, key)
	wire, err := SignGrant(key, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(wire), len(want.payload()), len(want.Candidate.payload()))
	got, by, err := Keys{key.Public()}.OpenGrant(wire)
	if err != nil || by.Name != "anna" || !got.Candidate.Equal(want.Candidate) || got.Expires != want.Expires {
		t.Fatalf("OpenGrant = %v, %v, %v", got, by, err)
	}
	if err := got.CheckTime(time.Unix(want.NotBefore, 0)); err != nil {
		t.Error(err)
	}
}
