package strictjson

import (
	"errors"
	"testing"
)

func TestCheck_NamesTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"object":                    {`{"a":1}`, nil},
		"scalar":                    {` 5 `, nil},
		"surrogate pair":            {`"\ud83d\ude00"`, nil},
		"empty":                     {``, ErrSyntax},
		"NaN":                       {`NaN`, ErrSyntax},
		"cut":                       {`{"a":`, ErrSyntax},
		"byte order mark":           {"\ufeff{}", ErrSyntax},
		"two values":                {`{"filename":"a.md"}{"filename":"b.md"}`, ErrTrailing},
		"trailing comma":            {`{},`, ErrTrailing},
		"duplicate":                 {`{"filename":"a.md","filename":"b.md"}`, ErrDuplicate},
		"duplicate by escape":       {`{"filename":"a.md","\u0066ilename":"b.md"}`, ErrDuplicate},
		"duplicate deep":            {`[{"a":{"b":1,"b":2}}]`, ErrDuplicate},
		"lone high surrogate":       {`"\ud800"`, ErrUTF8},
		"lone low surrogate":        {`"x\uDC00y"`, ErrUTF8},
		"lone surrogate in a name":  {`{"\ud800":1}`, ErrUTF8},
		"high surrogate, then high": {`["\ud800\ud800"]`, ErrUTF8},
		"invalid UTF-8":             {"\"\xff\"", ErrUTF8},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check([]byte(c.in), FrameLimits); !errors.Is(err, c.want) {
				t.Errorf("Check(%q) = %v, want %v", c.in, err, c.want)
			}
		})
	}
}
