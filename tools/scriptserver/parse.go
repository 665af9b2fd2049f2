package scriptserver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"sallyport/tools/strictjson"
)

// ParseError says where a description cannot be read.
type ParseError struct {
	File         string
	Line, Column int    // from 1; 0 if it is the file as a whole
	Path         string // keys from the root, with dots; may be empty
	Err          error
}

// Error reads FILE:LINE:COLUMN: PATH: what is wrong.
func (e *ParseError) Error() string {
	text := e.File
	if e.Line > 0 {
		text += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	if e.Path != "" {
		text += ": " + e.Path
	}
	return text + ": " + e.Err.Error()
}

// Unwrap is what is wrong.
func (e *ParseError) Unwrap() error { return e.Err }

// Parse reads a description from JSON, as [Script.Encode] writes it: unknown and repeated keys, values of
// another kind and whatever [Script.Check] finds are a [*ParseError]. file is how the error calls it.
func Parse(file string, data []byte) (Script, error) {
	var s Script
	if err := strictjson.Decode(data, &s); err != nil {
		return Script{}, locate(file, data, err)
	}
	if problems := s.Check(); len(problems) > 0 {
		p := problems[0]
		return Script{}, &ParseError{File: file, Path: strings.Join(p.Path, "."), Err: errors.New(p.Message)}
	}
	return s, nil
}

// locate finds the place that a refusal is about: the strict decoder names none.
func locate(file string, data []byte, refusal error) error {
	out := &ParseError{File: file, Err: refusal}
	if len(data) > strictjson.FrameLimits.Bytes {
		return out
	}
	var s Script
	var at *json.SemanticError
	if !errors.As(json.Unmarshal(data, &s, json.RejectUnknownMembers(true)), &at) {
		return out
	}
	before := data[:min(int64(len(data)), at.ByteOffset)]
	out.Line = 1 + bytes.Count(before, []byte{'\n'})
	out.Column = len(before) - bytes.LastIndexByte(before, '\n')
	out.Path = strings.ReplaceAll(strings.TrimPrefix(string(at.JSONPointer), "/"), "/", ".")
	if own := at.Err; own != nil && !errors.Is(own, json.ErrUnknownName) {
		out.Err = own
	}
	return out
}

// Encode returns the description as canonical JSON, which [Parse] reads back.
func (s Script) Encode() ([]byte, error) {
	text, err := strictjson.Encode(s)
	if err != nil {
		return nil, fmt.Errorf("encode the scripted server %q: %w", s.Name, err)
	}
	return text, nil
}
