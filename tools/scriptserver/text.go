package scriptserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"sallyport/tools/strictjson"
)

// maxText bounds a text or value when it is made, in bytes. What is to be larger is a [Frame] with Times.
const maxText = 8 << 20

var errTooLarge = fmt.Errorf("it grows over %d bytes: use a frame with `times` for a flood", maxText)

// Text is bytes: written out, repeated, or taken from the call. In JSON and YAML it is a text, or a
// mapping with one of text, hex, argument, sha256, file and join, and perhaps times.
type Text struct {
	Text     string // as it stands
	Hex      string // bytes that are no UTF-8, as hex digits with white space between them
	Argument string // of the call: a text as it is, anything else as compact JSON; nothing if absent
	SHA256   *Text  // hex digits of the SHA-256 of another text
	File     *Text  // the content of a file below the server's files; nothing if absent
	Join     []Text // one after another
	Times    int    // how often; 0 is once
}

// plain is a text as it stands.
func plain(text string) *Text { return &Text{Text: text} }

// UnmarshalJSON reads a text or a mapping.
func (t *Text) UnmarshalJSON(data []byte) error {
	var out Text
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &out.Text); err != nil {
			return fmt.Errorf("not a text: %w", err)
		}
		*t = out
		return nil
	}
	members, err := strictjson.Members(data)
	if err != nil {
		return errors.New("it must be a text, or a mapping with one of text, hex, argument, sha256, file and join")
	}
	sources := 0
	for _, m := range members {
		if m.Name != "times" {
			sources++
		}
		if err := out.member(m); err != nil {
			return err
		}
	}
	if sources != 1 {
		return errors.New("a mapping for a text has exactly one of text, hex, argument, sha256, file and join")
	}
	*t = out
	return nil
}

func (t *Text) member(m strictjson.Member) error {
	var err error
	switch m.Name {
	case "text":
		err = json.Unmarshal(m.Value, &t.Text)
	case "hex":
		err = json.Unmarshal(m.Value, &t.Hex)
		if _, bad := unhex(t.Hex); bad != nil || t.Hex == "" {
			return errors.New("hex: write hex digits, two for a byte, such as \"ef bb bf\"")
		}
	case "argument":
		if err = json.Unmarshal(m.Value, &t.Argument); err == nil && t.Argument == "" {
			return errors.New("argument: it names none")
		}
	case "sha256":
		t.SHA256 = new(Text)
		err = t.SHA256.UnmarshalJSON(m.Value)
	case "file":
		t.File = new(Text)
		err = t.File.UnmarshalJSON(m.Value)
	case "join":
		t.Join = []Text{}
		err = json.Unmarshal(m.Value, &t.Join)
	case "times":
		if t.Times, err = strconv.Atoi(string(m.Value)); err != nil || t.Times < 1 {
			return errors.New("times: it is a whole number above zero")
		}
	default:
		return fmt.Errorf("unknown key %q: a text takes text, hex, argument, sha256, file, join and times", m.Name)
	}
	if err != nil {
		return fmt.Errorf("%s: it is of another kind: %w", m.Name, err)
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Times == 0 && t.Hex == "" && t.Argument == "" && t.SHA256 == nil && t.File == nil && t.Join == nil {
		return json.Marshal(t.Text)
	}
	form := map[string]any{}
	switch {
	case t.Hex != "":
		form["hex"] = t.Hex
	case t.Argument != "":
		form["argument"] = t.Argument
	case t.SHA256 != nil:
		form["sha256"] = t.SHA256
	case t.File != nil:
		form["file"] = t.File
	case t.Join != nil:
		form["join"] = t.Join
	default:
		form["text"] = t.Text
	}
	if t.Times > 0 {
		form["times"] = t.Times
	}
	return json.Marshal(form)
}

// fixed reports whether the text is known before any call.
func (t *Text) fixed() bool {
	if t == nil {
		return true
	}
	for i := range t.Join {
		if !t.Join[i].fixed() {
			return false
		}
	}
	return t.Argument == "" && t.File == nil && t.SHA256.fixed()
}

// scene is what texts and values are made from.
type scene struct {
	arguments map[string][]byte                 // of the call: compact JSON
	read      func(name string) ([]byte, error) // a file of the server
}

// render makes the bytes; nil is none.
func (s scene) render(t *Text) ([]byte, error) {
	if t == nil {
		return nil, nil
	}
	once, err := s.once(t)
	if err != nil {
		return nil, err
	}
	times := max(t.Times, 1)
	if len(once) > 0 && times > maxText/len(once) {
		return nil, errTooLarge
	}
	if times == 1 {
		return once, nil
	}
	return bytes.Repeat(once, times), nil
}

func (s scene) once(t *Text) ([]byte, error) {
	switch {
	case t.Hex != "":
		return unhex(t.Hex)
	case t.Argument != "":
		return s.argument(t.Argument), nil
	case t.SHA256 != nil:
		of, err := s.render(t.SHA256)
		sum := sha256.Sum256(of)
		return hex.AppendEncode(nil, sum[:]), err
	case t.File != nil:
		return s.file(t.File)
	case t.Join != nil:
		return s.join(t.Join)
	}
	if len(t.Text) > maxText {
		return nil, errTooLarge
	}
	return []byte(t.Text), nil
}

func (s scene) join(parts []Text) ([]byte, error) {
	all := []byte{}
	for i := range parts {
		part, err := s.render(&parts[i])
		if err != nil {
			return nil, err
		}
		if all = append(all, part...); len(all) > maxText {
			return nil, errTooLarge
		}
	}
	return all, nil
}

func (s scene) argument(name string) []byte {
	value := s.arguments[name]
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return []byte(text)
	}
	return value
}

func (s scene) file(name *Text) ([]byte, error) {
	at, err := s.render(name)
	if err != nil || s.read == nil {
		return nil, err
	}
	data, err := s.read(string(at))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && len(data) > maxText:
		return nil, errTooLarge
	}
	return data, err
}

func unhex(digits string) ([]byte, error) {
	return hex.DecodeString(string(bytes.Join(bytes.Fields([]byte(digits)), nil)))
}
