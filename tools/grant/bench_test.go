package grant

import (
	"crypto/ed25519"
	"testing"
	"time"
)

// BenchmarkOpenGrant verifies one grant among five trusted keys, and says how
// much of that is Ed25519 itself.
func BenchmarkOpenGrant(b *testing.B) {
	key := newKey(b, "anna")
	var keys Keys
	for _, name := range []string{"berta", "cleo", "dora", "emil"} {
		keys = append(keys, newKey(b, name).Public())
	}
	keys = append(keys, key.Public())
	wire := mustSign(b, key, claimsBy(b, key))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := keys.OpenGrant(wire); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(verifyAlone(b, key, wire)), "x-ed25519")
}

// verifyAlone is the time of one bare verification of the same bytes.
func verifyAlone(b *testing.B, key PrivateKey, wire string) time.Duration {
	b.Helper()
	e, err := parseEnvelope(wire)
	if err != nil {
		b.Fatal(err)
	}
	message := preAuthentication(e.PayloadType, e.Payload)
	const rounds = 2000
	start := time.Now()
	for range rounds {
		if !ed25519.Verify(key.Public().Key, message, e.Sig) {
			b.Fatal("not verified")
		}
	}
	return time.Since(start) / rounds
}

func BenchmarkOpenForged(b *testing.B) {
	key := newKey(b, "anna")
	wire := []byte(mustSign(b, key, claimsBy(b, key)))
	for name, forged := range map[string]string{"cut": string(wire[:1000]), "unknown": string(wire)} {
		b.Run(name, func(b *testing.B) {
			keys := Keys{newKey(b, "berta").Public()}
			for b.Loop() {
				if _, _, err := keys.OpenGrant(forged); err == nil {
					b.Fatal("opened")
				}
			}
		})
	}
}

func BenchmarkSignGrant(b *testing.B) {
	key := newKey(b, "anna")
	claims := claimsBy(b, key)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := SignGrant(key, claims); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBind(b *testing.B) {
	c := savedReport(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Bind([]byte(savedArguments)); err != nil {
			b.Fatal(err)
		}
	}
}
