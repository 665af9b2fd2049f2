package grant

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata anew")

func TestOpen_ReturnsWhatWasSigned(t *testing.T) {
	key := newKey(t, "anna")
	keys := Keys{newKey(t, "berta").Public(), key.Public()}
	for _, want := range oneOfEachKind(t, key) {
		wire := mustSign(t, key, want)
		got, err := openAny(keys, want, wire)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", want.kind(), got, err, want)
		}
		payload, by, err := keys.Open(want.kind(), wire)
		if err != nil || !bytes.Equal(payload, want.payload()) || by.Name != "anna" {
			t.Errorf("%s: Open = %q by %q, %v", want.kind(), payload, by.Name, err)
		}
	}
}

// The wire is a promise: grants signed by one version are opened by the next.
func TestWire_IsAsItWas(t *testing.T) {
	key := newKey(t, "anna")
	var all strings.Builder
	for _, v := range oneOfEachKind(t, key) {
		fmt.Fprintf(&all, "%s\n%s\n%s\n\n", v.kind(), v.payload(), mustSign(t, key, v))
	}
	const file = "testdata/wire.txt"
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("the wire changed (-update writes %s):\n%s", file, all.String())
	}
}

// A DSSE verifier that knows nothing of this package accepts the envelope.
func TestWire_IsADSSEEnvelope(t *testing.T) {
	key := newKey(t, "anna")
	data, err := base64.RawURLEncoding.DecodeString(mustSign(t, key, claimsBy(t, key)))
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct {
			KeyID string
			Sig   []byte
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	if e.PayloadType != "application/vnd.sallyport.grant.v1+json" || !ed25519.Verify(key.Public().Key, []byte(pae), e.Signatures[0].Sig) {
		t.Errorf("not verified: %s", data)
	}
}

// Every character is hit, every bit of a character in turn.
func TestOpen_RefusesFlippedBits(t *testing.T) {
	key := newKey(t, "anna")
	keys := Keys{key.Public()}
	wire := mustSign(t, key, claimsBy(t, key))
	for at := range wire {
		for _, bit := range []int{at % 8, (at + 3) % 8} {
			forged := []byte(wire)
			forged[at] ^= 1 << bit
			if _, _, err := keys.OpenGrant(string(forged)); err == nil {
				t.Fatalf("bit %d of character %d is not protected", bit, at)
			}
		}
	}
}

func TestOpen_RefusesEveryCut(t *testing.T) {
	key := newKey(t, "anna")
	wire := mustSign(t, key, claimsBy(t, key))
	for n := range wire {
		_, _, err := Keys{key.Public()}.OpenGrant(wire[:n])
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("%d of %d characters: %v", n, len(wire), err)
		}
	}
}

// A claim is changed and the old signature kept, bit by bit and whole.
func TestOpen_RefusesAnAlteredPayload(t *testing.T) {
	key := newKey(t, "anna")
	keys := Keys{key.Public()}
	for _, v := range oneOfEachKind(t, key) {
		e, err := parseEnvelope(mustSign(t, key, v))
		if err != nil {
			t.Fatal(err)
		}
		for at := range e.Payload {
			forged := e
			forged.Payload = bytes.Clone(e.Payload)
			forged.Payload[at] ^= 1
			_, _, err := keys.Open(v.kind(), forged.wire())
			mustBe(t, err, ErrSignature)
		}
	}
	for name, other := range alteredClaims(t, claimsBy(t, key)) {
		e, err := parseEnvelope(mustSign(t, key, claimsBy(t, key)))
		if err != nil {
			t.Fatal(err)
		}
		e.Payload = other.payload()
		if _, _, err := keys.OpenGrant(e.wire()); !errors.Is(err, ErrSignature) {
			t.Errorf("%s altered: %v", name, err)
		}
	}
}

// alteredClaims returns claims that differ in one claim each, for every claim.
func alteredClaims(t *testing.T, c Claims) map[string]Claims {
	t.Helper()
	altered := map[string]Claims{}
	for i := range reflect.TypeFor[Claims]().NumField() {
		if name := reflect.TypeFor[Claims]().Field(i).Name; name != "Candidate" {
			other := c
			alter(t, reflect.ValueOf(&other).Elem().Field(i))
			altered[name] = other
		}
	}
	for name, candidate := range alteredCandidates(t, c.Candidate) {
		other := c
		other.Candidate = candidate
		altered["Candidate."+name] = other
	}
	return altered
}

// alteredCandidates returns candidates that differ in one claim each.
func alteredCandidates(t *testing.T, c Candidate) map[string]Candidate {
	t.Helper()
	altered := map[string]Candidate{}
	for i := range reflect.TypeFor[Candidate]().NumField() {
		other := c
		alter(t, reflect.ValueOf(&other).Elem().Field(i))
		altered[reflect.TypeFor[Candidate]().Field(i).Name] = other
	}
	for i := range reflect.TypeFor[Field]().NumField() {
		other := c
		other.Fields = append([]Field(nil), c.Fields...)
		alter(t, reflect.ValueOf(&other.Fields[0]).Elem().Field(i))
		altered["Fields."+reflect.TypeFor[Field]().Field(i).Name] = other
	}
	return altered
}

// alter changes the last character of a text, adds one to a number, and drops
// the last of a list.
func alter(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		last := "0"
		if strings.HasSuffix(v.String(), last) {
			last = "1"
		}
		v.SetString(v.String()[:v.Len()-1] + last)
	case reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(v.Slice(0, v.Len()-1))
	default:
		t.Fatalf("a claim of kind %s: teach this test to alter it", v.Kind())
	}
}

func TestOpen_RefusesAnUnknownKey(t *testing.T) {
	anna, berta := newKey(t, "anna"), newKey(t, "berta")
	wire := mustSign(t, anna, claimsBy(t, anna))
	for name, keys := range map[string]Keys{
		"no keys":                  nil,
		"another key":              {berta.Public()},
		"another key of that name": {keyFrom(t, "anna", "impostor").Public()},
		"a key of no bytes":        {{Name: "anna"}},
	} {
		_, _, err := keys.OpenGrant(wire)
		if !errors.Is(err, ErrUnknownKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The id in the envelope finds a key; only the signature proves it.
func TestOpen_KeyIDIsNoProof(t *testing.T) {
	anna, berta := newKey(t, "anna"), newKey(t, "berta")
	e, err := parseEnvelope(mustSign(t, berta, claimsBy(t, berta)))
	if err != nil {
		t.Fatal(err)
	}
	e.KeyID = anna.Public().ID()
	_, _, err = Keys{anna.Public(), berta.Public()}.OpenGrant(e.wire())
	mustBe(t, err, ErrSignature)
}

func TestOpen_RefusesAnotherKind(t *testing.T) {
	key := newKey(t, "anna")
	keys := Keys{key.Public()}
	for _, made := range oneOfEachKind(t, key) {
		for _, taken := range oneOfEachKind(t, key) {
			if made.kind() == taken.kind() {
				continue
			}
			_, err := openAny(keys, taken, mustSign(t, key, made))
			mustBe(t, err, ErrKind)

			e, err := parseEnvelope(mustSign(t, key, made))
			if err != nil {
				t.Fatal(err)
			}
			e.PayloadType = taken.kind().PayloadType()
			_, err = openAny(keys, taken, e.wire())
			mustBe(t, err, ErrSignature)

			_, err = openAny(keys, taken, seal(key, taken.kind().PayloadType(), made.payload()))
			mustBe(t, err, ErrClaims)
		}
	}
}

func TestOpen_RefusesAnApproverWhoDoesNotOwnTheKey(t *testing.T) {
	anna, berta := newKey(t, "anna"), newKey(t, "berta")
	for _, v := range oneOfEachKind(t, berta) { // names berta, signed by anna
		_, err := openAny(Keys{anna.Public(), berta.Public()}, v, seal(anna, v.kind().PayloadType(), v.payload()))
		mustBe(t, err, ErrApprover)
	}
}

func TestOpen_RefusesEnvelopesThatAreNotCanonical(t *testing.T) {
	key := newKey(t, "anna")
	wire := mustSign(t, key, claimsBy(t, key))
	data, err := base64.RawURLEncoding.DecodeString(wire)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	again := func(old, replacement string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the envelope", old)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(text, old, replacement, 1)))
	}
	one := text[strings.Index(text, `{"keyid"`):strings.Index(text, `]}`)]
	for name, forged := range map[string]string{
		"empty":             "",
		"no base64url":      wire[:len(wire)-1] + "+",
		"padding":           wire + "=",
		"newline in base64": wire[:8] + "\n" + wire[8:],
		"newline behind":    wire + "\n",
		"space before":      " " + wire,
		"dot behind":        wire + ".",
		"not JSON":          base64.RawURLEncoding.EncodeToString([]byte("grant")),
		"null":              base64.RawURLEncoding.EncodeToString([]byte("null")),
		"empty object":      base64.RawURLEncoding.EncodeToString([]byte("{}")),
		"white space":       again(`,"payloadType"`, `, "payloadType"`),
		"trailing data":     again(`]}`, `]} `),
		"extra member":      again(`{"payload"`, `{"a":1,"payload"`),
		"duplicate member":  again(`,"signatures"`, `,"payloadType":"application/vnd.sallyport.grant.v1+json","signatures"`),
		"other case":        again(`"payloadType"`, `"payloadtype"`),
		"escaped":           again(`application/vnd`, `application\/vnd`),
		"no signature":      again(one, ``),
		"two signatures":    again(one, one+`,`+one),
		"null signature":    again(one, `null`),
		"mistyped keyid":    again(`"keyid":"`, `"keyid":1,"x":"`),
		"upper-case keyid":  again(key.Public().ID(), strings.ToUpper(key.Public().ID())),
		"no type":           again(KindGrant.PayloadType(), ""),
		"newline in sig":    again(`"sig":"`, `"sig":"\n`),
		"short signature":   again(`=="}]}`, `"}]}`),
	} {
		if _, _, err := (Keys{key.Public()}).OpenGrant(forged); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpen_RefusesASignatureOfAnotherSize(t *testing.T) {
	key := newKey(t, "anna")
	e, err := parseEnvelope(mustSign(t, key, claimsBy(t, key)))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 63} {
		short := e
		short.Sig = e.Sig[:size]
		_, _, err := Keys{key.Public()}.OpenGrant(short.wire())
		mustBe(t, err, ErrSignature)
	}
}

func TestOpen_BoundsTheWire(t *testing.T) {
	key := newKey(t, "anna")
	longest, tooLong := "", ""
	for n := 0; tooLong == ""; n++ { // any payload: Open does not parse it
		wire := seal(key, KindGrant.PayloadType(), bytes.Repeat([]byte{'x'}, 900+n))
		if len(wire) > MaxWire {
			tooLong = wire
		} else {
			longest = wire
		}
	}
	keys := Keys{key.Public()}
	if _, _, err := keys.Open(KindGrant, longest); err != nil {
		t.Errorf("%d characters: %v", len(longest), err)
	}
	_, _, err := keys.Open(KindGrant, tooLong)
	mustBe(t, err, ErrMalformed)
	if len(longest) < MaxWire-8 || len(tooLong) > MaxWire+8 {
		t.Errorf("%d and %d characters do not straddle the limit", len(longest), len(tooLong))
	}
	_, err = parseEnvelope(strings.Repeat("A", MaxWire+1))
	if mustBe(t, err, ErrMalformed); !strings.Contains(err.Error(), "2048") {
		t.Errorf("2,049 characters: %v", err)
	}
	if _, err = parseEnvelope(strings.Repeat("A", MaxWire)); strings.Contains(err.Error(), "2048") {
		t.Errorf("2,048 characters: %v", err)
	}
}

func TestOpenGrants_NeedsDifferentApproversOfOneCandidate(t *testing.T) {
	anna, berta, cleo := newKey(t, "anna"), newKey(t, "berta"), newKey(t, "cleo")
	alias := keyFrom(t, "alias", "anna")         // anna's key under another name
	second := keyFrom(t, "anna", "anna's other") // another key under anna's name
	by := func(k PrivateKey) string { return mustSign(t, k, claimsBy(t, k)) }
	later := claimsBy(t, anna)
	later.Grant, later.Expires = digits("later")[:32], later.Expires+1
	other := claimsBy(t, berta)
	other.Candidate.Head = digits("another head")

	for name, c := range map[string]struct {
		wires []string
		need  int
		keys  Keys
		want  error
	}{
		"one":                     {[]string{by(anna)}, 1, Keys{anna.Public()}, nil},
		"two":                     {[]string{by(anna), by(berta)}, 2, Keys{anna.Public(), berta.Public()}, nil},
		"two, other order":        {[]string{by(berta), by(anna)}, 2, Keys{anna.Public(), berta.Public()}, nil},
		"three":                   {[]string{by(anna), by(berta), by(cleo)}, 3, Keys{anna.Public(), berta.Public(), cleo.Public()}, nil},
		"one of two":              {[]string{by(anna)}, 2, Keys{anna.Public()}, ErrCount},
		"three for two":           {[]string{by(anna), by(berta), by(cleo)}, 2, Keys{anna.Public(), berta.Public(), cleo.Public()}, ErrCount},
		"two for one":             {[]string{by(anna), by(berta)}, 1, Keys{anna.Public(), berta.Public()}, ErrCount},
		"none needed":             {[]string{by(anna)}, 0, Keys{anna.Public()}, ErrCount},
		"fewer than none":         {[]string{by(anna)}, -1, Keys{anna.Public()}, ErrCount},
		"the same twice":          {[]string{by(anna), by(anna)}, 2, Keys{anna.Public()}, ErrSameApprover},
		"two by one key":          {[]string{by(anna), mustSign(t, anna, later)}, 2, Keys{anna.Public()}, ErrSameApprover},
		"one key, two names":      {[]string{by(anna), by(alias)}, 2, Keys{anna.Public(), alias.Public()}, ErrApprover},
		"two keys, one name":      {[]string{by(anna), by(second)}, 2, Keys{anna.Public(), second.Public()}, ErrSameApprover},
		"different candidates":    {[]string{by(anna), mustSign(t, berta, other)}, 2, Keys{anna.Public(), berta.Public()}, ErrDisagree},
		"second by an unknown":    {[]string{by(anna), by(berta)}, 2, Keys{anna.Public()}, ErrUnknownKey},
		"empty second":            {[]string{by(anna), ""}, 2, Keys{anna.Public()}, ErrMalformed},
		"second of another kind":  {[]string{by(anna), mustSign(t, berta, refusalBy(t, berta))}, 2, Keys{anna.Public(), berta.Public()}, ErrKind},
		"nothing where one needs": {[]string{""}, 1, Keys{anna.Public()}, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			claims, err := c.keys.OpenGrants(strings.Join(c.wires, "."), c.need)
			mustBe(t, err, c.want)
			if c.want == nil && len(claims) != c.need || c.want != nil && claims != nil {
				t.Errorf("%d claims", len(claims))
			}
		})
	}
}

// A trusted list cannot give one key two names, since the first one answers; if
// it ever could, the key counts and not the name.
func TestKeys_ShareAKeyOrAName(t *testing.T) {
	anna := newKey(t, "anna").Public()
	for name, c := range map[string]struct {
		other PublicKey
		want  bool
	}{
		"another key, another name": {newKey(t, "berta").Public(), false},
		"same key, another name":    {keyFrom(t, "alias", "anna").Public(), true},
		"another key, same name":    {keyFrom(t, "anna", "other").Public(), true},
	} {
		if got := (Keys{anna}).share(c.other); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	anna, berta := newKey(f, "anna"), newKey(f, "berta")
	keys := Keys{anna.Public(), berta.Public()}
	genuine := map[string]bool{}
	for _, key := range []PrivateKey{anna, berta} {
		for _, v := range oneOfEachKind(f, key) {
			wire := mustSign(f, key, v)
			genuine[wire] = true
			f.Add(wire)
			f.Add(wire[:len(wire)-1])
		}
	}
	f.Add(mustSign(f, newKey(f, "mallory"), claimsBy(f, newKey(f, "mallory"))))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"payload":"e30=","payloadType":"x","signatures":[{"keyid":"","sig":""}]}`)))
	f.Add("")
	f.Add(".")
	f.Fuzz(func(t *testing.T, wire string) {
		for _, kind := range []Kind{KindGrant, KindEdit, KindRefusal, KindStatement} {
			if _, _, err := keys.Open(kind, wire); err == nil && !genuine[wire] {
				t.Fatalf("%q verified as %s, and nobody signed it", wire, kind)
			}
		}
		for _, v := range oneOfEachKind(t, anna) {
			_, _ = openAny(keys, v, wire)
		}
		if _, err := keys.OpenGrants(wire, 2); err == nil {
			first, second, _ := strings.Cut(wire, ".")
			if !genuine[first] || !genuine[second] {
				t.Fatalf("%q verified as two grants, and nobody signed them", wire)
			}
		}
	})
}
