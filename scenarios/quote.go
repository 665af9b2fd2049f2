package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoted is a text as YAML reads it back exactly: in double quotes, with everything
// escaped that a reader or a parser could take for something else. What is no UTF-8
// cannot be written; ok is false then.
func quoted(text string) (string, bool) {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String(), utf8.ValidString(text)
}

// block is a text as YAML reads it back exactly, over several lines if that is plain to
// read. The lines below the first begin with that indent.
func block(text, indent string) (string, bool) {
	if !plainLines(text) {
		return quoted(text)
	}
	var b strings.Builder
	b.WriteString("|")
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString("\n")
		if line != "" {
			b.WriteString(indent + line)
		}
	}
	return b.String(), true
}

// plainLines reports whether a text can be written as lines: more than one, or one with
// its end, all of them visible, none with blanks at its end, and the first not empty and
// not indented.
func plainLines(text string) bool {
	lines, ended := strings.CutSuffix(text, "\n")
	if !ended || lines == "" || strings.HasPrefix(lines, " ") || strings.HasPrefix(lines, "\n") || strings.HasSuffix(lines, "\n") || !utf8.ValidString(text) {
		return false
	}
	for line := range strings.SplitSeq(lines, "\n") {
		if strings.TrimRight(line, " ") != line || strings.ContainsFunc(line, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}

// flow is JSON as YAML on one line: the same, with texts quoted as YAML reads them.
func flow(data []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var b strings.Builder
	if err := flowValue(&b, dec); err != nil {
		return "", fmt.Errorf("write JSON as YAML: %w", err)
	}
	return b.String(), nil
}

func flowValue(b *strings.Builder, dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		return flowMembers(b, dec, t == '{')
	case string:
		text, _ := quoted(t)
		b.WriteString(text)
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, t)
	}
	return nil
}

// flowMembers writes the members of an object, or the items of a list.
func flowMembers(b *strings.Builder, dec *json.Decoder, object bool) error {
	ends := map[bool]string{true: "{}", false: "[]"}[object]
	b.WriteByte(ends[0])
	for i := 0; dec.More(); i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		if object {
			if err := flowValue(b, dec); err != nil {
				return err
			}
			b.WriteString(": ")
		}
		if err := flowValue(b, dec); err != nil {
			return err
		}
	}
	b.WriteByte(ends[1])
	_, err := dec.Token()
	return err
}
