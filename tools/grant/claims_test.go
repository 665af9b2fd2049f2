package grant

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCheckTime_HoldsFromNotBeforeUntilExpires(t *testing.T) {
	claims := Claims{NotBefore: 1000, Expires: 1060}
	for _, c := range []struct {
		now  time.Time
		want error
	}{
		{time.Unix(0, 0), ErrNotYetValid},
		{time.Unix(999, 999_999_999), ErrNotYetValid},
		{time.Unix(1000, 0), nil},
		{time.Unix(1000, 1), nil},
		{time.Unix(1059, 999_999_999), nil},
		{time.Unix(1060, 0), ErrExpired},
		{time.Unix(1060, 1), ErrExpired},
		{time.Unix(1<<40, 0), ErrExpired},
		{time.Unix(1059, 0).In(time.FixedZone("far east", 14*3600)), nil},
	} {
		if err := claims.CheckTime(c.now); err != c.want {
			t.Errorf("at %d.%09d: %v, want %v", c.now.Unix(), c.now.Nanosecond(), err, c.want)
		}
	}
}

// Even rightly signed, a payload passes only in the one canonical form of
// exactly its claims.
func TestParse_RefusesEveryOtherForm(t *testing.T) {
	key := newKey(t, "anna")
	for _, v := range oneOfEachKind(t, key) {
		payload := string(v.payload())
		for name, forged := range map[string]string{
			"nothing":          ``,
			"null":             `null`,
			"no object":        `[]`,
			"empty claims":     `{}`,
			"white space":      " " + payload,
			"newline":          payload + "\n",
			"trailing data":    payload + payload,
			"extra first":      strings.Replace(payload, `{`, `{"a":1,`, 1),
			"extra last":       payload[:len(payload)-1] + `,"z":1}`,
			"approved":         payload[:len(payload)-1] + `,"approved":true}`,
			"duplicate":        payload[:len(payload)-1] + `,"approver":"anna"}`,
			"duplicate, equal": strings.Replace(payload, `{`, `{"approver":"anna",`, 1),
			"other case":       strings.Replace(payload, `"approver"`, `"Approver"`, 1),
			"escape":           strings.Replace(payload, `"anna"`, `"\u0061nna"`, 1),
		} {
			if err := parseAs(v, forged); !errors.Is(err, ErrClaims) {
				t.Errorf("%s, %s: %v", v.kind(), name, err)
			}
			_, err := openAny(Keys{key.Public()}, v, seal(key, v.kind().PayloadType(), []byte(forged)))
			if !errors.Is(err, ErrClaims) && !errors.Is(err, ErrMalformed) { // too long for the wire
				t.Errorf("%s, %s, signed: %v", v.kind(), name, err)
			}
		}
	}
}

// Every claim in turn is left out, made null, or given the other JSON type.
func TestParse_RefusesMissingAndMistypedClaims(t *testing.T) {
	key := newKey(t, "anna")
	for _, v := range oneOfEachKind(t, key) {
		paths := claimPaths(decoded(t, v.payload()), nil)
		if len(paths) < 5 {
			t.Fatalf("%s has only the claims %v", v.kind(), paths)
		}
		for _, path := range paths {
			for name, change := range map[string]func(any) (any, bool){
				"missing":  func(any) (any, bool) { return nil, false },
				"null":     func(any) (any, bool) { return nil, true },
				"mistyped": func(old any) (any, bool) { return mistyped(old), true },
				"object":   func(any) (any, bool) { return map[string]any{}, true },
			} {
				claims := decoded(t, v.payload())
				changeAt(claims, path, change)
				forged := string(appendCanonical(nil, claims))
				if err := parseAs(v, forged); !errors.Is(err, ErrClaims) {
					t.Errorf("%s, %s of %v: %v", v.kind(), name, path, err)
				}
			}
		}
	}
}

func decoded(t *testing.T, payload []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(payload)))
	dec.UseNumber()
	var claims map[string]any
	if err := dec.Decode(&claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// claimPaths lists the path of every member, inner ones included.
func claimPaths(v any, path []any) [][]any {
	var paths [][]any
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			here := append(append([]any(nil), path...), name)
			paths = append(append(paths, here), claimPaths(inner, here)...)
		}
	case []any:
		for i, inner := range v {
			paths = append(paths, claimPaths(inner, append(append([]any(nil), path...), i))...)
		}
	}
	return paths
}

// changeAt replaces or, if change says false, removes the member at the path.
func changeAt(v any, path []any, change func(any) (any, bool)) {
	for _, step := range path[:len(path)-1] {
		if name, ok := step.(string); ok {
			v = v.(map[string]any)[name]
		} else {
			v = v.([]any)[step.(int)]
		}
	}
	object, name := v.(map[string]any), path[len(path)-1].(string)
	if changed, ok := change(object[name]); ok {
		object[name] = changed
	} else {
		delete(object, name)
	}
}

func mistyped(old any) any {
	switch old := old.(type) {
	case json.Number:
		return old.String() // "5" is not 5
	case []any:
		return "[]"
	default:
		return json.Number("5")
	}
}

func parseAs(v signed, payload string) (err error) {
	switch v.(type) {
	case Claims:
		_, err = ParseClaims([]byte(payload))
	case Edit:
		_, err = ParseEdit([]byte(payload))
	case Refusal:
		_, err = ParseRefusal([]byte(payload))
	case Statement:
		_, err = ParseStatement([]byte(payload))
	}
	return err
}

func TestParse_RefusesNumbersThatAreNotWrittenPlainly(t *testing.T) {
	key := newKey(t, "anna")
	payload := string(claimsBy(t, key).payload())
	for _, number := range []string{
		`1800000660.0`, `1.80000066e9`, `01800000660`, `+1800000660`, `-0`, `18000006600000000000000`, `"1800000660"`,
	} {
		_, err := ParseClaims([]byte(strings.Replace(payload, `"expires":1800000660`, `"expires":`+number, 1)))
		if !errors.Is(err, ErrClaims) {
			t.Errorf("expires %s: %v", number, err)
		}
	}
}

func TestSign_ChecksWhatItSigns(t *testing.T) {
	key := newKey(t, "anna")
	claims := func(change func(*Claims)) signed {
		c := claimsBy(t, key)
		change(&c)
		return c
	}
	edit := func(change func(*Edit)) signed {
		e := editBy(t, key)
		change(&e)
		return e
	}
	refusal := func(change func(*Refusal)) signed {
		r := refusalBy(t, key)
		change(&r)
		return r
	}
	statement := func(change func(*Statement)) signed {
		s := statementBy(t, key)
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		v    signed
		want error
	}{
		"another approver":       {claims(func(c *Claims) { c.Approver = "berta" }), ErrApprover},
		"no approver":            {claims(func(c *Claims) { c.Approver = "" }), ErrClaims},
		"no grant id":            {claims(func(c *Claims) { c.Grant = "" }), ErrClaims},
		"upper-case grant id":    {claims(func(c *Claims) { c.Grant = strings.ToUpper(c.Grant) }), ErrClaims},
		"long grant id":          {claims(func(c *Claims) { c.Grant += "0" }), ErrClaims},
		"never valid":            {claims(func(c *Claims) { c.Expires = c.NotBefore }), ErrClaims},
		"valid for one second":   {claims(func(c *Claims) { c.Expires = c.NotBefore + 1 }), nil},
		"expires before":         {claims(func(c *Claims) { c.Expires = c.NotBefore - 1 }), ErrClaims},
		"negative time":          {claims(func(c *Claims) { c.NotBefore = -1 }), ErrClaims},
		"from the epoch":         {claims(func(c *Claims) { c.NotBefore = 0 }), nil},
		"year 9999":              {claims(func(c *Claims) { c.Expires = maxTime }), nil},
		"year 10000":             {claims(func(c *Claims) { c.Expires = maxTime + 1 }), ErrClaims},
		"bad candidate":          {claims(func(c *Claims) { c.Candidate.ID = digits("x") }), ErrClaims},
		"edit by another":        {edit(func(e *Edit) { e.Approver = "berta" }), ErrApprover},
		"edit without arguments": {edit(func(e *Edit) { e.Arguments = "" }), ErrClaims},
		"edit of negative size":  {edit(func(e *Edit) { e.Bytes = -1 }), ErrClaims},
		"edit to nothing":        {edit(func(e *Edit) { e.Bytes = 0 }), nil},
		"edit of no candidate":   {edit(func(e *Edit) { e.Candidate = "" }), ErrClaims},
		"refusal by another":     {refusal(func(r *Refusal) { r.Approver = "berta" }), ErrApprover},
		"refusal without head":   {refusal(func(r *Refusal) { r.Head = "" }), ErrClaims},
		"refusal in no run":      {refusal(func(r *Refusal) { r.Run = "" }), ErrClaims},
		"refusal before time":    {refusal(func(r *Refusal) { r.Time = -1 }), ErrClaims},
		"statement by another":   {statement(func(s *Statement) { s.Approver = "berta" }), ErrApprover},
		"statement: not_applied": {statement(func(s *Statement) { s.Verdict = VerdictNotApplied }), nil},
		"statement: unknown":     {statement(func(s *Statement) { s.Verdict = VerdictUnknown }), nil},
		"statement: probably":    {statement(func(s *Statement) { s.Verdict = "probably" }), ErrClaims},
		"statement: nothing":     {statement(func(s *Statement) { s.Verdict = "" }), ErrClaims},
		"statement of no call":   {statement(func(s *Statement) { s.Call = "" }), ErrClaims},
	} {
		t.Run(name, func(t *testing.T) {
			wire, err := sign(key, c.v)
			mustBe(t, err, c.want)
			if (wire == "") != (c.want != nil) {
				t.Errorf("wire %q beside %v", wire, err)
			}
			// What signing refuses, opening refuses too.
			_, err = openAny(Keys{key.Public()}, c.v, seal(key, c.v.kind().PayloadType(), c.v.payload()))
			mustBe(t, err, c.want)
		})
	}
	_, err := SignGrant(PrivateKey{}, claimsBy(t, key))
	mustBe(t, err, ErrKey)
}

func TestSign_EveryKindHasItsFunction(t *testing.T) {
	key := newKey(t, "anna")
	grant, err1 := SignGrant(key, claimsBy(t, key))
	edit, err2 := SignEdit(key, editBy(t, key))
	refusal, err3 := SignRefusal(key, refusalBy(t, key))
	statement, err4 := SignStatement(key, statementBy(t, key))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for i, wire := range []string{grant, edit, refusal, statement} {
		v := oneOfEachKind(t, key)[i]
		if got, err := openAny(Keys{key.Public()}, v, wire); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: %+v, %v", v.kind(), got, err)
		}
	}
}

// The payloads are written by hand; this compares with the general writer.
func TestPayload_IsCanonicalJSONOfEveryMember(t *testing.T) {
	key := newKey(t, "anna")
	odd := claimsBy(t, key)
	odd.Candidate.Fields = []Field{{Name: "a\"\\\x00\x1f\n\u2028</é😀", SHA256: digits("x"), Bytes: math.MaxInt64}}
	odd.Candidate.Scope = "<desk> & 'reading'"
	empty := claimsBy(t, key)
	empty.Candidate.Fields = []Field{}
	for _, v := range append(oneOfEachKind(t, key), odd, empty) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(v.payload()), string(appendCanonical(nil, decoded(t, data))); got != want {
			t.Errorf("%s: payload\n%s, want\n%s", v.kind(), got, want)
		}
		if err := parseAs(v, string(v.payload())); err != nil {
			t.Errorf("%s: %v", v.kind(), err)
		}
	}
}

func FuzzParseClaims(f *testing.F) {
	key := newKey(f, "anna")
	for _, v := range oneOfEachKind(f, key) {
		f.Add(v.payload())
	}
	for _, seed := range []string{
		``, `null`, `5`, `"text"`, `[1]`, `NaN`, `{}`, `{}{}`, `{"approver":"a","approver":"b"}`, `{"approver":"a","\u0061pprover":"b"}`,
		strings.Repeat("[", 900), `{"expires":1e999999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, v := range oneOfEachKind(t, key) {
			if err := parseAs(v, string(payload)); err != nil && !errors.Is(err, ErrClaims) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%s: %v", v.kind(), err)
			}
		}
		claims, err := ParseClaims(payload)
		if err != nil {
			return
		}
		if string(claims.payload()) != string(payload) || claims.check() != nil {
			t.Fatalf("%q was taken for %+v", payload, claims)
		}
	})
}
