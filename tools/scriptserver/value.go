package scriptserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"sallyport/tools/strictjson"
)

// Value is JSON for the wire. Written as a text it goes there exactly as it stands, whether it is JSON or
// not; written as anything else it is that value, in which a mapping with one of these keys alone is
// replaced:
//
//	$text    a [Text], as a JSON string
//	$raw     a [Text], as it stands
//	$list    {of, times}: a list of so many
//	$object  {of, times}: an object of so many members, m1, m2 and on
//	$nest    {of, times, end}: of, with the text "$here" in it replaced by itself so often, then by end
type Value []byte

// The keys that are replaced.
const (
	makeText   = "$text"
	makeRaw    = "$raw"
	makeList   = "$list"
	makeObject = "$object"
	makeNest   = "$nest"
	here       = "$here"
)

// UnmarshalJSON keeps the value, in its canonical form.
func (v *Value) UnmarshalJSON(data []byte) error {
	canonical, err := strictjson.Canonical(data)
	if err != nil {
		return fmt.Errorf("it cannot be written like this, only as a text that goes out as it stands: %w", err)
	}
	*v = canonical
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (v Value) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	return v, nil
}

// value makes the bytes of a value; nil is none.
func (s scene) value(v Value) ([]byte, error) {
	if len(v) == 0 {
		return nil, nil
	}
	if v[0] == '"' {
		var text string
		err := json.Unmarshal(v, &text)
		return []byte(text), err
	}
	out, err := s.tree(nil, v)
	if err == nil && len(out) > maxText {
		err = errTooLarge
	}
	return out, err
}

// tree appends a value with its replacements.
func (s scene) tree(out, v []byte) ([]byte, error) {
	if len(out) > maxText {
		return nil, errTooLarge
	}
	switch v[0] {
	case '{':
		members, err := strictjson.Members(v)
		if err != nil {
			return nil, err
		}
		if len(members) == 1 {
			if make := makers[members[0].Name]; make != nil {
				return make(s, out, members[0].Value)
			}
		}
		return s.object(out, members)
	case '[':
		return s.list(out, v)
	}
	return append(out, v...), nil
}

func (s scene) object(out []byte, members []strictjson.Member) ([]byte, error) {
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(quote(out, []byte(m.Name)), ':')
		var err error
		if out, err = s.tree(out, m.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func (s scene) list(out, v []byte) ([]byte, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(v, &items); err != nil {
		return nil, err
	}
	out = append(out, '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = s.tree(out, item); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// makers replace mappings, by their key.
var makers map[string]func(s scene, out, v []byte) ([]byte, error)

func init() {
	makers = map[string]func(s scene, out, v []byte) ([]byte, error){
		makeText: scene.makeText, makeRaw: scene.makeRaw, makeList: scene.makeList,
		makeObject: scene.makeObject, makeNest: scene.makeNest,
	}
}

func (s scene) makeText(out, v []byte) ([]byte, error) {
	text, err := s.generated(makeText, v)
	return quote(out, text), err
}

func (s scene) makeRaw(out, v []byte) ([]byte, error) {
	text, err := s.generated(makeRaw, v)
	return append(out, text...), err
}

func (s scene) generated(key string, v []byte) ([]byte, error) {
	var t Text
	if err := t.UnmarshalJSON(v); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	text, err := s.render(&t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// repeated is what the makers of structure take.
type repeated struct {
	of, end []byte
	times   int
}

func readRepeated(key string, v []byte, ends bool) (repeated, error) {
	r := repeated{end: []byte("{}")}
	members, err := strictjson.Members(v)
	for _, m := range members {
		switch {
		case m.Name == "of":
			r.of = m.Value
		case m.Name == "times":
			r.times, err = strconv.Atoi(string(m.Value))
		case m.Name == "end" && ends:
			r.end = m.Value
		default:
			return r, fmt.Errorf("%s: unknown key %q", key, m.Name)
		}
	}
	if err != nil || r.of == nil || r.times < 1 {
		return r, fmt.Errorf("%s: it takes {of: VALUE, times: N}, N above zero", key)
	}
	return r, nil
}

func (s scene) makeList(out, v []byte) ([]byte, error) {
	return s.many(makeList, out, v, "[]", func(out []byte, _ int) []byte { return out })
}

func (s scene) makeObject(out, v []byte) ([]byte, error) {
	return s.many(makeObject, out, v, "{}", func(out []byte, n int) []byte { return fmt.Appendf(out, `"m%d":`, n) })
}

func (s scene) many(key string, out, v []byte, ends string, name func(out []byte, n int) []byte) ([]byte, error) {
	r, err := readRepeated(key, v, false)
	if err != nil {
		return nil, err
	}
	of, err := s.tree(nil, r.of)
	if err != nil {
		return nil, err
	}
	out = append(out, ends[0])
	for n := range r.times {
		if n > 0 {
			out = append(out, ',')
		}
		if out = append(name(out, n+1), of...); len(out) > maxText {
			return nil, errTooLarge
		}
	}
	return append(out, ends[1]), nil
}

func (s scene) makeNest(out, v []byte) ([]byte, error) {
	r, err := readRepeated(makeNest, v, true)
	if err != nil {
		return nil, err
	}
	of, err := s.tree(nil, r.of)
	if err != nil {
		return nil, err
	}
	ahead, behind, found := bytes.Cut(of, []byte(`"`+here+`"`))
	if !found || bytes.Contains(behind, []byte(`"`+here+`"`)) {
		return nil, errors.New(makeNest + ": \"" + here + "\" stands exactly once in `of`")
	}
	if r.times > maxText/len(of) {
		return nil, errTooLarge
	}
	out = append(out, bytes.Repeat(ahead, r.times)...)
	if out, err = s.tree(out, r.end); err != nil {
		return nil, err
	}
	return append(out, bytes.Repeat(behind, r.times)...), nil
}

// quote appends bytes as a JSON string. What is no UTF-8 stays as it is: then it is no JSON either.
func quote(out, text []byte) []byte {
	out = append(out, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
