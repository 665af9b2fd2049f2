package strictjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// sentinels are all reasons that Check and Canonical may give.
var sentinels = []error{ErrSyntax, ErrTrailing, ErrDuplicate, ErrUTF8, ErrDepth, ErrNumber, ErrTooLarge}

func TestCheck_NamesTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"object":                      {`{"a":1}`, nil},
		"scalar":                      {" 5\t\r\n", nil},
		"null":                        {`null`, nil},
		"surrogate pair":              {`"\ud83d\ude00"`, nil},
		"escaped backslash before u":  {`"\\ud800"`, nil},
		"same name in other objects":  {`[{"a":1},{"a":{"a":2}}]`, nil},
		"names that differ in case":   {`{"a":1,"A":2}`, nil},
		"names that differ in form":   {"{\"\u00e9\":1,\"e\u0301\":2}", nil},
		"empty":                       {``, ErrSyntax},
		"white space only":            {` `, ErrSyntax},
		"NaN":                         {`NaN`, ErrSyntax},
		"minus infinity":              {`-Infinity`, ErrSyntax},
		"leading zero":                {`01`, ErrTrailing},
		"plus":                        {`+1`, ErrSyntax},
		"bare point":                  {`1.`, ErrSyntax},
		"hexadecimal":                 {`0x1`, ErrTrailing},
		"cut in an object":            {`{"a":`, ErrSyntax},
		"cut in a string":             {`"a`, ErrSyntax},
		"cut in an escape":            {`"\u00`, ErrSyntax},
		"cut in a literal":            {`tru`, ErrSyntax},
		"cut in an array":             {`[1,`, ErrSyntax},
		"mismatched":                  {`[}`, ErrSyntax},
		"name that is no string":      {`{1:2}`, ErrSyntax},
		"trailing comma in an object": {`{"a":1,}`, ErrSyntax},
		"trailing comma in an array":  {`[1,]`, ErrSyntax},
		"missing comma":               {`[1 2]`, ErrSyntax},
		"missing colon":               {`{"a" 1}`, ErrSyntax},
		"single quotes":               {`{'a':1}`, ErrSyntax},
		"comment":                     {`{/**/}`, ErrSyntax},
		"newline in a string":         {"\"a\nb\"", ErrSyntax},
		"unknown escape":              {`"\x41"`, ErrSyntax},
		"no-break space":              {"\u00a05", ErrSyntax},
		"byte order mark":             {"\ufeff{}", ErrSyntax},
		"two values":                  {`{"filename":"a.md"}{"filename":"b.md"}`, ErrTrailing},
		"two lines":                   {"{}\n{}", ErrTrailing},
		"trailing NUL":                {"{}\x00", ErrTrailing},
		"trailing brace":              {`{}}`, ErrTrailing},
		"duplicate":                   {`{"filename":"a.md","filename":"b.md"}`, ErrDuplicate},
		"duplicate by escape":         {`{"filename":"a.md","\u0066ilename":"b.md"}`, ErrDuplicate},
		"duplicate by pair escape":    {`{"😀":1,"\ud83d\ude00":2}`, ErrDuplicate},
		"duplicate below":             {`[{"a":{"b":1,"b":2}}]`, ErrDuplicate},
		"duplicate empty name":        {`{"":1,"":2}`, ErrDuplicate},
		"lone high surrogate":         {`"\ud800"`, ErrUTF8},
		"lone low surrogate":          {`"x\uDC00y"`, ErrUTF8},
		"lone surrogate in a name":    {`{"\ud800":1}`, ErrUTF8},
		"high surrogate, then high":   {`["\ud800\ud800"]`, ErrUTF8},
		"low surrogate, then high":    {`["\udc00\ud800"]`, ErrUTF8},
		"high surrogate, then letter": {`"\ud83dx12345"`, ErrUTF8},
		"surrogate in raw bytes":      {"\"\xed\xa0\x80\"", ErrUTF8},
		"overlong slash":              {"\"\xc0\xaf\"", ErrUTF8},
		"invalid byte":                {"\"\xff\"", ErrUTF8},
		"invalid byte after the end":  {"{}\xff", ErrUTF8},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check([]byte(c.in), FrameLimits); err != c.want {
				t.Errorf("Check(%q) = %v, want %v", c.in, err, c.want)
			}
			if _, err := Canonical([]byte(c.in)); err != c.want {
				t.Errorf("Canonical(%q) = %v, want %v", c.in, err, c.want)
			}
		})
	}
}

// nested returns n open and n closed arrays, one inside the other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// nestedObjects returns n objects, one inside the other.
func nestedObjects(n int) string {
	return strings.Repeat(`{"a":`, n) + "0" + strings.Repeat("}", n)
}

func TestCheck_PassesAtTheLimitAndRefusesOnePast(t *testing.T) {
	frame := FrameLimits
	for name, c := range map[string]struct {
		limits   Limits
		at, past string
		want     error
	}{
		"bytes":                {Limits{Bytes: 4}, `"ab"`, `"abc"`, ErrTooLarge},
		"bytes count space":    {Limits{Bytes: 4}, `  {}`, `  {} `, ErrTooLarge},
		"bytes, not letters":   {Limits{Bytes: 4}, `"é"`, `"é "`, ErrTooLarge},
		"frame bytes":          {frame, `"` + strings.Repeat("x", 1<<20-2) + `"`, `"` + strings.Repeat("x", 1<<20-1) + `"`, ErrTooLarge},
		"depth of arrays":      {frame, nested(64), nested(65), ErrDepth},
		"depth of objects":     {frame, nestedObjects(64), nestedObjects(65), ErrDepth},
		"depth one":            {Limits{Depth: 1}, `[1,2]`, `[[]]`, ErrDepth},
		"depth after siblings": {Limits{Depth: 2}, `[[],[],{}]`, `[[],[{}]]`, ErrDepth},
		"parser's own depth":   {Limits{}, nested(10_000), nested(10_001), ErrDepth},
		"number of digits":     {frame, strings.Repeat("9", 32), strings.Repeat("9", 33), ErrNumber},
		"number with sign":     {frame, "-" + strings.Repeat("9", 31), "-" + strings.Repeat("9", 32), ErrNumber},
		"number with fraction": {frame, "0." + strings.Repeat("1", 30), "0." + strings.Repeat("1", 31), ErrNumber},
		"exponent":             {frame, `1e308`, `1e309`, ErrNumber},
		"exponent with plus":   {frame, `1E+308`, `1E+309`, ErrNumber},
		"negative exponent":    {frame, `1e-308`, `1e-309`, ErrNumber},
		"exponent with zeros":  {frame, `1e0000000308`, `1e0000000309`, ErrNumber},
		"exponent past int64":  {frame, `1e1`, `1e18446744073709551617`, ErrNumber},
		"number below":         {frame, `{"a":[1e308]}`, `{"a":[1e309]}`, ErrNumber},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check([]byte(c.at), c.limits); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			if err := Check([]byte(c.past), c.limits); err != c.want {
				t.Errorf("one past: %v, want %v", err, c.want)
			}
		})
	}
}

func TestCheck_LimitOfZeroIsOff(t *testing.T) {
	for _, in := range []string{nested(1000), strings.Repeat("9", 1000), `1e999999`, `"` + strings.Repeat("x", 2<<20) + `"`} {
		if err := Check([]byte(in), Limits{}); err != nil {
			t.Errorf("Check(%.20q…) without limits = %v", in, err)
		}
	}
	if err := Check([]byte(`{"a":1,"a":1}`), Limits{}); err != ErrDuplicate {
		t.Errorf("duplicate names without limits: %v", err)
	}
}

// A text that is no number is not searched for an exponent.
func TestCheck_StringsAreNoNumbers(t *testing.T) {
	in := fmt.Sprintf(`{"1e999999":%q}`, strings.Repeat("1e999999", 20))
	if err := Check([]byte(in), FrameLimits); err != nil {
		t.Error(err)
	}
}

func TestErrors_NeverQuoteTheInput(t *testing.T) {
	const secret = "hunter2"
	for _, in := range []string{
		`{"hunter2":1,"hunter2":2}`, `{"hunter2":hunter2}`, `hunter2`, `"hunter2`, `"\hunter2"`, `{"hunter2":"\ud800"}`,
		`{} hunter2`, `{"Name":"hunter2"}`, `{"hunter2":1}`, `{"n":"hunter2"}`, `{"s":["hunter2"]}`, `{"n":null,"hunter2":1}`,
	} {
		var v struct {
			N int    `json:"n"`
			S string `json:"s"`
		}
		_, canonical := Canonical([]byte(in))
		_, members := Members([]byte(in))
		for _, err := range []error{Check([]byte(in), FrameLimits), canonical, members, Decode([]byte(in), &v)} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: the error quotes it: %v", in, err)
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range fieldCases() {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkAgreesWithCanonical)
}

// fieldCases are inputs in which public runtimes went wrong, and their kind.
func fieldCases() []string {
	return []string{
		`null`, `5`, `"text"`, `[1]`, `NaN`, ``,
		`{"filename":"a.md"}{"filename":"b.md"}`,
		`{"filename":"a.md","filename":"b.md"}`,
		`{"filename":"a.md","\u0066ilename":"b.md"}`,
		nested(900), nested(64), nestedObjects(65),
		"[" + strings.Repeat("1e999999,", 299) + "1e999999]",
		`{"b":1,"a":[{"z":0,"":null}]," ":"\u0000\ud83d\ude00\/"}`,
		`"\ud800"`, "\"\xff\"", `[1e308,-0,0.10,1E+5]`, `{"a":1,}`, `[1 2]`,
	}
}

func isSentinel(err error) bool {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}
