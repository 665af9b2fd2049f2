package grant

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Fields returns the digests of the top-level arguments, sorted by name, for
// argument bytes that are a canonical JSON object ([ErrArguments] otherwise).
// The caller bounds the size; the nesting is bounded by encoding/json.
func Fields(arguments []byte) ([]Field, error) {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil || object == nil {
		return nil, ErrArguments
	}
	// Whatever the decoder let pass, a duplicate name or trailing data, is gone or
	// changed when the value is written again.
	if !bytes.Equal(appendCanonical(nil, object), arguments) {
		return nil, ErrArguments
	}
	fields := make([]Field, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		content := fieldBytes(object[name])
		fields = append(fields, Field{Name: name, SHA256: digest(content), Bytes: int64(len(content))})
	}
	return fields, nil
}

func fieldBytes(v any) []byte {
	if text, ok := v.(string); ok {
		return []byte(text)
	}
	return appendCanonical(nil, v)
}

// appendCanonical writes a value that was decoded with json.Number.
func appendCanonical(out []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		return appendObject(out, v)
	case []any:
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, element)
		}
		return append(out, ']')
	case string:
		return appendQuoted(out, v)
	case json.Number:
		return append(out, v...)
	case bool:
		if v {
			return append(out, "true"...)
		}
		return append(out, "false"...)
	default:
		return append(out, "null"...)
	}
}

func appendObject(out []byte, object map[string]any) []byte {
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, name), ':')
		out = appendCanonical(out, object[name])
	}
	return append(out, '}')
}
