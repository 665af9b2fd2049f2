package strictjson

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of an object: its name with the escapes undone, and its
// value as compact JSON.
type Member struct {
	Name  string
	Value []byte
}

// Members returns the members of the object that data is, in the order of
// data. It refuses what [Compact] refuses, and any other value with
// [ErrNotObject]. The values share no memory with data, and
// appending to one does not change another.
func Members(data []byte) ([]Member, error) {
	compact, err := Compact(data)
	if err != nil {
		return nil, err
	}
	if compact[0] != '{' {
		return nil, ErrNotObject
	}
	s, err := newScanner(compact, Limits{})
	if err != nil {
		return nil, err
	}
	return s.members()
}

func (s *scanner) members() ([]Member, error) {
	if _, err := s.delimiter(); err != nil {
		return nil, err
	}
	members := []Member{}
	for s.dec.PeekKind() != jsontext.KindEndObject {
		quoted, err := s.scalar()
		if err != nil {
			return nil, err
		}
		name, err := unquote(quoted)
		if err != nil {
			return nil, err
		}
		value, err := s.scalar()
		if err != nil {
			return nil, err
		}
		members = append(members, Member{Name: name, Value: value})
	}
	return members, nil
}

// Object returns the canonical object with these members, in whatever order
// they are given. Each value must be one JSON value that has a canonical form
// one level further down; names must be UTF-8 and distinct.
func Object(members []Member) ([]byte, error) {
	inner := formLimits
	inner.Depth--
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	out := []byte{'{'}
	for i, m := range sorted {
		if i > 0 {
			if sorted[i-1].Name == m.Name {
				return nil, ErrDuplicate
			}
			out = append(out, ',')
		}
		value, err := form(m.Value, true, inner)
		if err != nil {
			return nil, err
		}
		if out, err = jsontext.AppendQuote(out, m.Name); err != nil {
			return nil, ErrUTF8
		}
		out = append(append(out, ':'), value...)
	}
	return append(out, '}'), nil
}
