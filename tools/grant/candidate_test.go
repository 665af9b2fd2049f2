package grant

import (
	"errors"
	"strings"
	"testing"
)

func TestCandidateID_SeparatesItsParts(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{"run", "call", "arguments", "definition"},
		{"runc", "all", "arguments", "definition"},
		{"run", "callarguments", "", "definition"},
		{"run", "call", "argumentsdefinition", ""},
		{"call", "run", "arguments", "definition"},
		{"run", "call", "definition", "arguments"},
		{"", "", "", ""},
	} {
		id := CandidateID(parts[0], parts[1], parts[2], parts[3])
		if !isHex(id, 64) || seen[id] != nil {
			t.Errorf("%q has the id %s of %q", parts, id, seen[id])
		}
		seen[id] = parts
	}
}

// Ids are in journals and ledgers: they never change.
func TestCandidateID_IsAsItWas(t *testing.T) {
	const want = "8d863b22bfbf3618668c5706821ddf72a7870bc832bf559611b904695b7fd93d"
	if got := CandidateID("run-1", "call-1", digits("arguments"), digits("definition")); got != want {
		t.Errorf("CandidateID = %s", got)
	}
}

func TestCandidate_BindsTheArguments(t *testing.T) {
	c := savedReport(t)
	if c.Arguments != digits(savedArguments) || c.Bytes != int64(len(savedArguments)) {
		t.Errorf("arguments %s of %d bytes", c.Arguments, c.Bytes)
	}
	if c.ID != CandidateID(c.Run, c.Call, c.Arguments, c.Definition) {
		t.Errorf("id %s", c.ID)
	}
	want := []Field{
		{Name: "content", SHA256: digits("# Findings\n"), Bytes: 11},
		{Name: "filename", SHA256: digits("report.md"), Bytes: 9},
	}
	if len(c.Fields) != 2 || c.Fields[0] != want[0] || c.Fields[1] != want[1] {
		t.Errorf("fields %+v", c.Fields)
	}
	mustBe(t, c.Matches([]byte(savedArguments)), nil)
	for _, other := range []string{
		`{"content":"# Findings!","filename":"report.md"}`,
		`{"content":"# Findings\n","filename":"report.mD"}`,
		`{"content":"# Findings\n","filename":"report.md","x":1}`,
		`{}`,
	} {
		mustBe(t, c.Matches([]byte(other)), ErrMismatch)
	}
	mustBe(t, c.Matches([]byte(savedArguments+" ")), ErrArguments)
}

func TestCandidate_MatchesOnlyIfEveryListedFieldDoes(t *testing.T) {
	c := savedReport(t)
	for i := range c.Fields {
		forged := c
		forged.Fields = append([]Field(nil), c.Fields...)
		forged.Fields[i].SHA256 = digits("another text")
		mustBe(t, forged.Matches([]byte(savedArguments)), ErrMismatch)
	}
	forged := c
	forged.Bytes++
	mustBe(t, forged.Matches([]byte(savedArguments)), ErrMismatch)
}

func TestCandidate_BindsNamedFieldsOnly(t *testing.T) {
	arguments := []byte(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"filename":"report.md"}`)
	c := savedReport(t)
	_, err := c.Bind(arguments)
	mustBe(t, err, ErrTooLarge)
	bound, err := c.Bind(arguments, "filename", "absent")
	if err != nil || len(bound.Fields) != 1 || bound.Fields[0].Name != "filename" {
		t.Fatalf("fields %+v, %v", bound.Fields, err)
	}
	mustBe(t, bound.Matches(arguments), nil)
	mustBe(t, bound.Matches([]byte(`{"a":0,"b":2,"c":3,"d":4,"e":5,"f":6,"filename":"report.md"}`)), ErrMismatch)
	if len(c.Fields) != 2 {
		t.Error("the candidate it was called on changed")
	}
}

func TestCandidate_EqualComparesEveryClaim(t *testing.T) {
	c := savedReport(t)
	if !c.Equal(savedReport(t)) {
		t.Error("a candidate is not equal to its copy")
	}
	for name, other := range alteredCandidates(t, c) {
		if c.Equal(other) || other.Equal(c) {
			t.Errorf("%s altered, and still equal", name)
		}
	}
	none, empty := c, c
	none.Fields, empty.Fields = nil, []Field{}
	if !none.Equal(empty) {
		t.Error("no fields and an empty list of them differ")
	}
}

func TestCandidate_CheckNamesTheClaim(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Candidate)
		want   string // in the error; empty if it passes
	}{
		"as bound":                  {func(*Candidate) {}, ""},
		"no run":                    {func(c *Candidate) { c.Run = "" }, "run"},
		"run of 64":                 {func(c *Candidate) { c.Run = strings.Repeat("r", 64) }, ""},
		"run of 65":                 {func(c *Candidate) { c.Run = strings.Repeat("r", 65) }, "run"},
		"run in upper case":         {func(c *Candidate) { c.Run = "Run" }, "run"},
		"run with a slash":          {func(c *Candidate) { c.Run = "../run" }, "run"},
		"no call":                   {func(c *Candidate) { c.Call = "" }, "call"},
		"call of 65":                {func(c *Candidate) { c.Call = strings.Repeat("c", 65) }, "call"},
		"no tool":                   {func(c *Candidate) { c.Tool = "" }, "tool"},
		"tool with an escape":       {func(c *Candidate) { c.Tool = "save\x1b[2J" }, "tool"},
		"no audience":               {func(c *Candidate) { c.Audience = "" }, "audience"},
		"audience with a newline":   {func(c *Candidate) { c.Audience = "docs\n" }, "audience"},
		"no scope":                  {func(c *Candidate) { c.Scope = "" }, "scope"},
		"scope in Chinese":          {func(c *Candidate) { c.Scope = "书桌" }, ""},
		"scope that turns around":   {func(c *Candidate) { c.Scope = "desk\u202e" }, "scope"},
		"scope of no width":         {func(c *Candidate) { c.Scope = "desk\u200b" }, "scope"},
		"scope that is no UTF-8":    {func(c *Candidate) { c.Scope = "\xff" }, "scope"},
		"no definition":             {func(c *Candidate) { c.Definition = "" }, "definition"},
		"definition in upper case":  {func(c *Candidate) { c.Definition = strings.ToUpper(c.Definition) }, "definition"},
		"no arguments":              {func(c *Candidate) { c.Arguments = "" }, "arguments"},
		"arguments of 63":           {func(c *Candidate) { c.Arguments = c.Arguments[1:] }, "arguments"},
		"no head":                   {func(c *Candidate) { c.Head = "" }, "head"},
		"head that is no hex":       {func(c *Candidate) { c.Head = strings.Repeat("g", 64) }, "head"},
		"negative size":             {func(c *Candidate) { c.Bytes = -1 }, "bytes"},
		"size zero":                 {func(c *Candidate) { c.Bytes = 0 }, ""},
		"no fields":                 {func(c *Candidate) { c.Fields = nil }, ""},
		"field twice":               {func(c *Candidate) { c.Fields[0].Name = c.Fields[1].Name }, "order"},
		"fields in another order":   {func(c *Candidate) { c.Fields[0], c.Fields[1] = c.Fields[1], c.Fields[0] }, "order"},
		"field of no digest":        {func(c *Candidate) { c.Fields[1].SHA256 = "" }, "sha256"},
		"field of negative size":    {func(c *Candidate) { c.Fields[1].Bytes = -1 }, "bytes of a field"},
		"field that is no UTF-8":    {func(c *Candidate) { c.Fields[0].Name = "\xff" }, "name"},
		"field of 257":              {func(c *Candidate) { c.Fields = c.Fields[:1]; c.Fields[0].Name = strings.Repeat("n", 257) }, "name"},
		"id of another candidate":   {func(c *Candidate) { c.ID = digits("x") }, "id"},
		"id of another run":         {func(c *Candidate) { c.Run += "x"; c.ID = savedReport(t).ID }, "id"},
		"id of another definition":  {func(c *Candidate) { c.Definition = digits("x"); c.ID = savedReport(t).ID }, "id"},
		"id of other arguments":     {func(c *Candidate) { c.Arguments = digits("x"); c.ID = savedReport(t).ID }, "id"},
		"id of another call":        {func(c *Candidate) { c.Call = digits("x"); c.ID = savedReport(t).ID }, "id"},
		"another scope, same id":    {func(c *Candidate) { c.Scope = "desk/writing" }, ""},
		"more than fits in a grant": {func(c *Candidate) { c.Scope = strings.Repeat("s", 256); c.Audience = c.Scope }, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			candidate := savedReport(t)
			id := candidate.ID
			c.change(&candidate)
			if candidate.ID == id && c.want != "id" { // the id is right unless it is what the case is about
				candidate.ID = CandidateID(candidate.Run, candidate.Call, candidate.Arguments, candidate.Definition)
			}
			err := candidate.Check()
			if c.want == "" {
				mustBe(t, err, nil)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrClaims) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v, want one about %q", err, c.want)
			}
		})
	}
}

// Fits is exact: what fits can be signed, and one byte more cannot.
func TestCandidate_FitsTellsWhatCanBeSigned(t *testing.T) {
	key := newKey(t, "anna")
	claims := claimsBy(t, key)
	claims.NotBefore, claims.Expires = maxTime-1, maxTime
	largest := claims
	for len(claims.Candidate.Scope) < MaxScope && claims.Candidate.Fits(key.name) {
		largest = claims
		claims.Candidate.Scope += "s"
	}
	if wire, err := SignGrant(key, largest); err != nil || len(wire) > MaxWire {
		t.Errorf("a candidate that fits: %d characters, %v", len(wire), err)
	}
	_, err := SignGrant(key, claims)
	mustBe(t, err, ErrTooLarge)
	if size := len(seal(key, KindGrant.PayloadType(), claims.payload())); size <= MaxWire {
		t.Errorf("refused, and has only %d characters", size)
	}
}

func TestWireLen_IsTheLengthOfTheWire(t *testing.T) {
	key := newKey(t, "anna")
	for _, v := range oneOfEachKind(t, key) {
		if got, want := wireLen(v.kind(), len(v.payload())), len(mustSign(t, key, v)); got != want {
			t.Errorf("%s: %d, want %d", v.kind(), got, want)
		}
	}
}
