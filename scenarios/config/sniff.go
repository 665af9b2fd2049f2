package config

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// HasKey reports whether a YAML file is a mapping, or begins with one, that has a key
// at its top. It wants only that the file is YAML: a folder may hold files of other
// programs, whose documents, anchors and tags are no business of ours. The error is an
// [*Error].
func HasKey(name string, data []byte, key string) (bool, error) {
	keys, err := TopKeys(name, data)
	return slices.Contains(keys, key), err
}

// TopKeys lists the keys at the top of a YAML file, those of every document that is a
// mapping, as [HasKey] looks for them.
func TopKeys(name string, data []byte) ([]string, error) {
	var keys []string
	f := &File{name: name, lines: strings.Split(string(data), "\n")}
	switch {
	case len(data) > MaxFile:
		return nil, f.whole("the file has %d bytes, more than %d", len(data), MaxFile)
	case !utf8.Valid(data):
		return nil, f.whole("the file is not UTF-8 text")
	}
	if d, deep := f.tooDeep(string(data)); deep {
		return nil, diagnose([]Diagnostic{d})
	}
	parsed, err := parseYAML(data)
	if err != nil {
		return nil, f.syntax(err)
	}
	for _, doc := range parsed.Docs {
		m, ok := doc.Body.(*ast.MappingNode)
		if !ok {
			continue
		}
		for _, v := range m.Values {
			keys = append(keys, strings.Trim(v.Key.String(), `"'`+byteOrderMark))
		}
	}
	return keys, nil
}
