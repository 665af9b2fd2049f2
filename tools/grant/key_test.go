package grant

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"
)

func TestPublicKey_IsOneLine(t *testing.T) {
	key := newKey(t, "anna@example.org").Public()
	line := key.String()
	if want := "ed25519 " + base64.StdEncoding.EncodeToString(key.Key) + " anna@example.org"; line != want {
		t.Errorf("String = %q, want %q", line, want)
	}
	got, err := ParsePublicKey(line)
	if err != nil || got.Name != key.Name || !got.Key.Equal(key.Key) || got.ID() != key.ID() {
		t.Errorf("ParsePublicKey = %v, %v", got, err)
	}
	if id := key.ID(); id != digest(key.Key)[:16] {
		t.Errorf("ID = %s", id)
	}
}

func TestParsePublicKey_RefusesWhatIsNotALine(t *testing.T) {
	key := newKey(t, "anna").Public()
	code := base64.StdEncoding.EncodeToString(key.Key)
	line := func(raw []byte) string { return "ed25519 " + base64.StdEncoding.EncodeToString(raw) + " anna" }
	for name, c := range map[string]struct {
		line string
		good bool
	}{
		"as written":             {"ed25519 " + code + " anna", true},
		"name of 64":             {"ed25519 " + code + " " + strings.Repeat("a", 64), true},
		"name of every sign":     {"ed25519 " + code + " Az09._@-", true},
		"empty":                  {"", false},
		"another algorithm":      {"rsa " + code + " anna", false},
		"upper case":             {"ED25519 " + code + " anna", false},
		"no name":                {"ed25519 " + code, false},
		"empty name":             {"ed25519 " + code + " ", false},
		"name of 65":             {"ed25519 " + code + " " + strings.Repeat("a", 65), false},
		"name with a slash":      {"ed25519 " + code + " a/b", false},
		"name that is not ASCII": {"ed25519 " + code + " аnna", false},
		"name of two words":      {"ed25519 " + code + " anna berta", false},
		"two spaces":             {"ed25519  " + code + " anna", false},
		"tab":                    {"ed25519\t" + code + "\tanna", false},
		"space before":           {" ed25519 " + code + " anna", false},
		"newline":                {"ed25519 " + code + " anna\n", false},
		"newline in the key":     {"ed25519 " + code[:8] + "\n" + code[8:] + " anna", false},
		"no padding":             {"ed25519 " + strings.TrimRight(code, "=") + " anna", false},
		"base64url":              {"ed25519 " + strings.Repeat("-", 43) + "= anna", false},
		"bits behind the key":    {"ed25519 " + code[:42] + "/= anna", code[42] == '/'},
		"a long line":            {"ed25519 " + strings.Repeat("A", 1<<20) + " anna", false},
		"31 bytes":               {line(key.Key[:31]), false},
		"33 bytes":               {line(append(bytes.Clone(key.Key), 0)), false},
		"64 bytes":               {line(append(bytes.Clone(key.Key), key.Key...)), false},
		"no bytes":               {line(nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePublicKey(c.line)
			if c.good {
				mustBe(t, err, nil)
			} else {
				mustBe(t, err, ErrKey)
			}
		})
	}
}

// Under a key of low order one signature verifies for every message, or for one
// in eight: the classic forgery, shown here to be possible and refused.
func TestOpen_RefusesLowOrderKeys(t *testing.T) {
	neutral := PublicKey{Name: "anna", Key: append([]byte{1}, make([]byte, 31)...)}
	key := newKey(t, "anna")
	payload := claimsBy(t, key).payload()
	forged := envelope{
		Payload: payload, PayloadType: KindGrant.PayloadType(),
		KeyID: neutral.ID(), Sig: append([]byte{1}, make([]byte, 63)...),
	}
	message := preAuthentication(forged.PayloadType, payload)
	if !ed25519.Verify(neutral.Key, message, forged.Sig) {
		t.Fatal("the forgery is none: this test shows nothing")
	}
	_, _, err := Keys{neutral}.OpenGrant(forged.wire())
	mustBe(t, err, ErrUnknownKey)
}

func TestPublicKey_RefusesUnsafePoints(t *testing.T) {
	last := new(big.Int).Sub(prime, big.NewInt(1))
	for _, y := range lowOrderYs(t) {
		for _, sign := range []byte{0, 0x80} {
			encoded := encodeY(y)
			encoded[31] |= sign
			mustRefuseKey(t, "low order", encoded)
		}
	}
	for n := range 19 { // the encodings from the prime to 2^255 - 1
		for _, sign := range []byte{0, 0x80} {
			encoded := encodeY(new(big.Int).Add(prime, big.NewInt(int64(n))))
			encoded[31] |= sign
			mustRefuseKey(t, "not canonical", encoded)
		}
	}
	off := 0
	for n := int64(2); n < 40; n++ { // about every second y has no x
		for _, y := range []*big.Int{big.NewInt(n), new(big.Int).Sub(last, big.NewInt(n))} {
			encoded := encodeY(y)
			if squareRootOfX2(y) == nil {
				mustRefuseKey(t, "off the curve", encoded)
				off++
				continue
			}
			if err := (PublicKey{Name: "anna", Key: encoded}).Check(); err != nil {
				t.Errorf("%x is on the curve: %v", encoded, err)
			}
		}
	}
	if off == 0 {
		t.Error("no y off the curve was tried")
	}
}

func TestPublicKey_AcceptsEveryHonestKey(t *testing.T) {
	for i := range 200 {
		key := keyFrom(t, "anna", fmt.Sprint(i))
		if err := key.Public().Check(); err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
	}
}

func mustRefuseKey(t *testing.T, why string, encoded []byte) {
	t.Helper()
	key := PublicKey{Name: "anna", Key: encoded}
	_, err := ParsePublicKey(key.String())
	if !errors.Is(err, ErrKey) {
		t.Errorf("%s, %x: %v", why, encoded, err)
	}
}

func encodeY(y *big.Int) []byte {
	encoded := y.FillBytes(make([]byte, 32))
	for i := range 16 {
		encoded[i], encoded[31-i] = encoded[31-i], encoded[i]
	}
	return encoded
}

// squareRootOfX2 returns an x for the y, or nil if there is none.
func squareRootOfX2(y *big.Int) *big.Int {
	y2 := new(big.Int).Mul(y, y)
	numerator := new(big.Int).Sub(y2, big.NewInt(1))
	denominator := new(big.Int).Add(y2.Mul(y2, curveD), big.NewInt(1))
	x2 := numerator.Mul(numerator, new(big.Int).ModInverse(denominator.Mod(denominator, prime), prime))
	return new(big.Int).ModSqrt(x2.Mod(x2, prime), prime)
}

type point struct{ x, y *big.Int }

// add is the addition law of the curve, in affine coordinates.
func (p point) add(q point) point {
	mul := func(a ...*big.Int) *big.Int {
		product := big.NewInt(1)
		for _, factor := range a {
			product.Mod(product.Mul(product, factor), prime)
		}
		return product
	}
	t := mul(curveD, p.x, q.x, p.y, q.y)
	one := big.NewInt(1)
	inverse := func(n *big.Int) *big.Int { return new(big.Int).ModInverse(n.Mod(n, prime), prime) }
	x := new(big.Int).Add(mul(p.x, q.y), mul(p.y, q.x))
	y := new(big.Int).Add(mul(p.y, q.y), mul(p.x, q.x))
	return point{mul(x, inverse(new(big.Int).Add(one, t))), mul(y, inverse(new(big.Int).Sub(one, t)))}
}

func (p point) times(n *big.Int) point {
	sum := point{big.NewInt(0), big.NewInt(1)}
	for i := n.BitLen() - 1; i >= 0; i-- {
		if sum = sum.add(sum); n.Bit(i) == 1 {
			sum = sum.add(p)
		}
	}
	return sum
}

// lowOrderYs computes the points whose order divides 8, from any point of the
// curve: times the order of the base point, a point falls into that group.
func lowOrderYs(t *testing.T) []*big.Int {
	t.Helper()
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	ys := map[string]*big.Int{}
	for n := int64(2); n < 60; n++ {
		y := big.NewInt(n)
		if x := squareRootOfX2(y); x != nil {
			small := point{x, y}.times(order)
			if eight := small.times(big.NewInt(8)); eight.x.Sign() != 0 || eight.y.Cmp(big.NewInt(1)) != 0 {
				t.Fatalf("the order of %v does not divide 8", small)
			}
			ys[small.y.String()] = small.y
		}
	}
	if len(ys) != len(lowOrder) {
		t.Fatalf("%d y coordinates of low order, the table has %d", len(ys), len(lowOrder))
	}
	all := make([]*big.Int, 0, len(ys))
	for _, y := range ys {
		all = append(all, y)
	}
	return all
}

func TestNewPrivateKey_NeedsANameAndRandomness(t *testing.T) {
	for _, name := range []string{"", "a b", "a/b", strings.Repeat("a", 65), "a\n"} {
		_, err := NewPrivateKey(name, nil)
		mustBe(t, err, ErrKey)
	}
	_, err := NewPrivateKey("anna", strings.NewReader("too short"))
	mustBe(t, err, io.ErrUnexpectedEOF)
	first, err1 := NewPrivateKey("anna", nil)
	second, err2 := NewPrivateKey("anna", nil)
	if err := errors.Join(err1, err2); err != nil || first.Public().Key.Equal(second.Public().Key) {
		t.Errorf("two keys from the system's source: %v, %v, %v", first, second, err)
	}
}

func TestPrivateKey_NeverPrintsItself(t *testing.T) {
	key := newKey(t, "anna")
	seed := key.secret().Seed()
	type holder struct {
		key   PrivateKey
		Key   PrivateKey
		inner *PrivateKey
	}
	held := holder{key, key, &key}
	encoded, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%o", "%b", "%T"} {
		for _, v := range []any{key, &key, held, &held, []PrivateKey{key}, map[string]PrivateKey{"k": key}} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
	}
	for _, text := range texts {
		for _, form := range []string{
			string(seed), hex.EncodeToString(seed)[:12], strings.ToUpper(hex.EncodeToString(seed)[:12]),
			base64.StdEncoding.EncodeToString(seed)[:12],
			strings.Trim(fmt.Sprint(seed[:4]), "[]"), fmt.Sprintf("%#v", seed[:4])[7:20],
		} {
			if strings.Contains(text, form) {
				t.Errorf("the key is in %q", text)
			}
		}
	}
	if got := fmt.Sprint(key); got != "private key anna ("+key.Public().ID()+")" {
		t.Errorf("it prints as %q", got)
	}
}
