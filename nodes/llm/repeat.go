package llm

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// keyText is the only key of a mapping that stands for a repeated text in args:
// {$text: {text: x, times: 8000}}.
const keyText = "$text"

// maxRepeated bounds a repeated text, in bytes.
const maxRepeated = 1 << 19

// repeated is the text that a mapping stands for; false if it is an ordinary one.
func repeated(values []*ast.MappingValueNode) (text string, is bool, err error) {
	if len(values) != 1 || values[0].Key.String() != keyText {
		return "", false, nil
	}
	times := 0
	for _, m := range mappingValues(values[0].Value) {
		switch v := m.Value.(type) {
		case *ast.StringNode:
			if m.Key.String() == "text" {
				text = v.Value
			}
		case *ast.IntegerNode:
			if m.Key.String() == "times" {
				times, err = strconv.Atoi(v.GetToken().Value)
			}
		}
	}
	if err != nil || text == "" || times < 1 || times > maxRepeated/len(text) {
		return "", true, wrongAt(values[0].Key, "write {$text: {text: TEXT, times: NUMBER}}, at most 512 KiB of it")
	}
	return strings.Repeat(text, times), true, nil
}
