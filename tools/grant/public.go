package grant

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
)

const (
	keyIDLen   = 16 // hex characters of a key id
	maxNameLen = 64 // characters of a key's name
	algorithm  = "ed25519"
)

// PublicKey is an approver's Ed25519 key and the name it goes by.
type PublicKey struct {
	Name string // 1 to 64 of letters, digits and "._@-"
	Key  ed25519.PublicKey
}

// ID returns the short name of the key in envelopes: the first 16 hex characters
// of the SHA-256 of its 32 bytes. It finds a key; it does not identify one.
func (p PublicKey) ID() string {
	sum := sha256.Sum256(p.Key)
	return hex.EncodeToString(sum[:keyIDLen/2])
}

// String returns the line that [ParsePublicKey] reads: "ed25519 BASE64 NAME".
func (p PublicKey) String() string {
	return algorithm + " " + base64.StdEncoding.EncodeToString(p.Key) + " " + p.Name
}

// ParsePublicKey reads one line "ed25519 BASE64 NAME", without a newline, with
// single spaces. Besides bad names and sizes it refuses points that are not on the
// curve, not in canonical encoding, or of low order (under which a signature can
// verify for any message). It returns [ErrKey].
func ParsePublicKey(line string) (PublicKey, error) {
	if len(line) > 256 {
		return PublicKey{}, fmt.Errorf("parse public key: %w: line too long", ErrKey)
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 || parts[0] != algorithm {
		return PublicKey{}, fmt.Errorf("parse public key: %w: want %q", ErrKey, "ed25519 BASE64 NAME")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil || base64.StdEncoding.EncodeToString(raw) != parts[1] {
		return PublicKey{}, fmt.Errorf("parse public key: %w: not base64", ErrKey)
	}
	p := PublicKey{Name: parts[2], Key: raw}
	if err := p.Check(); err != nil {
		return PublicKey{}, fmt.Errorf("parse public key: %w", err)
	}
	return p, nil
}

// Check reports whether the key has a good name and is safe to trust, as
// [ParsePublicKey] does. It returns [ErrKey].
func (p PublicKey) Check() error {
	if !isName(p.Name) {
		return fmt.Errorf("%w: the name must be 1 to %d of letters, digits and ._@-", ErrKey, maxNameLen)
	}
	if err := p.checkBytes(); err != nil {
		return err
	}
	if !onCurve(p.Key) {
		return fmt.Errorf("%w: not a point of the curve", ErrKey)
	}
	return nil
}

// checkBytes is the part of Check that is cheap enough for every verification.
func (p PublicKey) checkBytes() error {
	if len(p.Key) != ed25519.PublicKeySize {
		return fmt.Errorf("%w: not %d bytes", ErrKey, ed25519.PublicKeySize)
	}
	y := bytes.Clone(p.Key)
	y[31] &= 0x7f // the sign of x
	for _, low := range lowOrder {
		if bytes.Equal(y, low[:]) {
			return fmt.Errorf("%w: point of low order", ErrKey)
		}
	}
	if !belowPrime(y) {
		return fmt.Errorf("%w: not in canonical encoding", ErrKey)
	}
	return nil
}

// lowOrder holds the y coordinates, little-endian, of the eight points whose
// order divides 8. Each stands for both signs of x.
var lowOrder = [5][32]byte{
	{},         // order 4
	{1},        // the neutral element
	minusOne(), // order 2
	fromHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), // order 8
	fromHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), // order 8
}

func minusOne() (y [32]byte) {
	for i := range y {
		y[i] = 0xff
	}
	y[0], y[31] = 0xec, 0x7f
	return y
}

func fromHex(s string) (y [32]byte) {
	if _, err := hex.Decode(y[:], []byte(s)); err != nil {
		panic(err) // a constant of this file
	}
	return y
}

// belowPrime reports whether y, little-endian without the sign bit, is less
// than 2^255 - 19.
func belowPrime(y []byte) bool {
	if y[31] != 0x7f || y[0] < 0xed {
		return true
	}
	for _, b := range y[1:31] {
		if b != 0xff {
			return true
		}
	}
	return false
}

// The curve -x² + y² = 1 + dx²y² over the integers modulo prime.
var (
	prime  = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	curveD = func() *big.Int { // -121665/121666
		d := new(big.Int).ModInverse(big.NewInt(121666), prime)
		return d.Mod(d.Mul(d, big.NewInt(-121665)), prime)
	}()
)

// onCurve reports whether an x exists for the encoded y: x² = (y²-1)/(dy²+1)
// must be a square, which by Jacobi is so if the product of both sides is.
func onCurve(encoded []byte) bool {
	y := decodeY(encoded)
	y2 := new(big.Int).Mul(y, y)
	numerator := new(big.Int).Sub(y2, big.NewInt(1))
	denominator := y2.Mul(y2, curveD)
	denominator.Add(denominator, big.NewInt(1))
	product := numerator.Mul(numerator, denominator)
	return big.Jacobi(product.Mod(product, prime), prime) >= 0
}

// decodeY returns the y coordinate of an encoded point.
func decodeY(encoded []byte) *big.Int {
	bigEndian := make([]byte, len(encoded))
	for i, b := range encoded {
		bigEndian[len(encoded)-1-i] = b
	}
	bigEndian[0] &= 0x7f
	return new(big.Int).SetBytes(bigEndian)
}

func isName(s string) bool {
	if len(s) == 0 || len(s) > maxNameLen {
		return false
	}
	for _, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("._@-", rune(c)) {
			return false
		}
	}
	return true
}
