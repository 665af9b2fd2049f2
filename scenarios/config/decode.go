package config

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DecodeStrict reads a YAML file into the struct that out points to. What it does not
// expect is an error, with its place: all mistakes are listed at once in an [*Error],
// and out is then unchanged.
//
// Fields are named by their yaml tag; a field without one, or with "-", is not read.
// There is no coercion: 5 is no text, "5" no number, and a key without a value is an
// error. A mapping fills a slice of structs, in the order of the file, where the field
// has a tag keyed:"Name": Name is the field that takes the key. The tag check:"required"
// wants the key, check:"positive" a value above zero. A type with UnmarshalText reads a
// text, one with UnmarshalConfig whatever it likes, and one with UnmarshalJSON gets the
// value as JSON.
func DecodeStrict(file string, data []byte, out any) error {
	f, err := ParseFile(file, data)
	if err != nil {
		return err
	}
	return f.Decode(out)
}

// Decode is [DecodeStrict] for a file that has been read.
func (f *File) Decode(out any) error { return f.Root().Decode(out) }

// Root is the whole file as a value.
func (f *File) Root() Node { return Node{file: f, tree: f.root} }

// Node is a value in a file, not yet decoded. A field of this type takes what stands
// there, whatever it is.
type Node struct {
	file *File
	tree *tree
	path []string
}

// Unmarshaler is a type that reads its own forms. An error that is no [*Error] is put
// at the node.
type Unmarshaler interface{ UnmarshalConfig(Node) error }

// Decode is [DecodeStrict] for one value.
func (n Node) Decode(out any) error {
	target := reflect.ValueOf(out)
	if target.Kind() != reflect.Pointer || target.IsNil() || n.tree == nil {
		return fmt.Errorf("decode %q into %T: it takes a pointer, and a node of a file", n.name(), out)
	}
	fresh := reflect.New(target.Type().Elem())
	d := decoder{file: n.file, path: slices.Clone(n.path)}
	d.value(n.tree, fresh.Elem())
	if err := diagnose(d.found); err != nil {
		return err
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// Text returns the value if it is a text.
func (n Node) Text() (string, bool) {
	if n.tree == nil || n.tree.kind != text {
		return "", false
	}
	return n.tree.text, true
}

// IsMapping reports whether the value is a mapping.
func (n Node) IsMapping() bool { return n.tree != nil && n.tree.kind == mapping }

// IsList reports whether the value is a list.
func (n Node) IsList() bool { return n.tree != nil && n.tree.kind == list }

// Has reports whether the value is a mapping with that key.
func (n Node) Has(key string) bool {
	if !n.IsMapping() {
		return false
	}
	_, ok := n.tree.entry(key)
	return ok
}

// Position is where the value stands.
func (n Node) Position() Position {
	if n.tree == nil {
		return Position{}
	}
	return n.tree.at
}

// File is the name of the file that the value stands in.
func (n Node) File() string {
	if n.file == nil {
		return ""
	}
	return n.file.name
}

// Errorf is an error at the value's place.
func (n Node) Errorf(format string, args ...any) error {
	if n.file == nil {
		return fmt.Errorf(format, args...)
	}
	message := fmt.Sprintf(format, args...)
	if n.name() != "" {
		message = n.name() + ": " + message
	}
	return &Error{[]Diagnostic{n.file.at(n.Position(), message, "")}}
}

// MarshalJSON writes the value as JSON, so that it is part of digests.
func (n Node) MarshalJSON() ([]byte, error) { return json.Marshal(n.tree.plain()) }

// plain is the value as encoding/json knows it.
func (t *tree) plain() any {
	switch {
	case t == nil, t.kind == nothing:
		return nil
	case t.kind == text:
		return t.text
	case t.kind == truth:
		return t.truth
	case t.kind == mapping:
		m := make(map[string]any, len(t.entries))
		for _, e := range t.entries {
			m[e.key] = e.value.plain()
		}
		return m
	case t.kind == list:
		l := make([]any, len(t.items))
		for i, item := range t.items {
			l[i] = item.plain()
		}
		return l
	case t.number == nil: // infinite, or not a number
		return t.text
	}
	return t.number
}

func (n Node) name() string { return strings.Join(n.path, ".") }

// decoder fills Go values from trees and collects what does not fit.
type decoder struct {
	file  *File
	path  []string
	found []Diagnostic
}

func (d *decoder) refuse(p Position, remedy, format string, args ...any) {
	if len(d.found) >= maxDiagnostics {
		return
	}
	message := fmt.Sprintf(format, args...)
	if len(d.path) > 0 {
		message = strings.Join(d.path, ".") + ": " + message
	}
	found := d.file.at(p, message, remedy)
	if n := len(d.path); n > 0 && (d.path[n-1] == "key_env" || d.path[n-1] == "key_file") {
		found.Excerpt = hidden
	}
	d.found = append(d.found, found)
}

// below decodes at one step further down.
func (d *decoder) below(step string, t *tree, at Position, v reflect.Value) {
	d.path = append(d.path, step)
	defer func() { d.path = d.path[:len(d.path)-1] }()
	defer d.in(t)()
	if t.kind == nothing && v.Type() != reflect.TypeFor[Node]() {
		d.refuse(at, "write a value, or remove the key", "there is no value")
		return
	}
	d.value(t, v)
}

// in makes what is refused stand in the file that a value comes from, until the function
// that it returns is called.
func (d *decoder) in(t *tree) (out func()) {
	around := d.file
	if t.from != nil {
		d.file = t.from
	}
	return func() { d.file = around }
}

func (d *decoder) value(t *tree, v reflect.Value) {
	defer d.in(t)()
	if v.Type() == reflect.TypeFor[Node]() {
		v.Set(reflect.ValueOf(Node{file: d.file, tree: t, path: slices.Clone(d.path)}))
		return
	}
	switch u := v.Addr().Interface().(type) {
	case Unmarshaler:
		d.take(t, u.UnmarshalConfig(Node{file: d.file, tree: t, path: slices.Clone(d.path)}))
		return
	case encoding.TextUnmarshaler:
		if t.kind != text && t.kind != whole && t.kind != fraction {
			d.mismatch(t, "a text")
			return
		}
		d.take(t, u.UnmarshalText([]byte(t.text)))
		return
	case json.Unmarshaler:
		value, err := json.Marshal(t.plain())
		if err == nil {
			err = u.UnmarshalJSON(value)
		}
		d.take(t, err)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(t, v.Elem())
	case reflect.Struct:
		d.structure(t, v)
	case reflect.Slice:
		d.slice(t, v)
	case reflect.Map:
		d.mapping(t, v)
	default:
		d.scalar(t, v)
	}
}

// take puts the error of a type that reads itself at the value.
func (d *decoder) take(t *tree, err error) {
	var placed *Error
	switch {
	case err == nil:
	case errors.As(err, &placed):
		d.found = append(d.found, placed.Diagnostics...)
	default:
		d.refuse(t.at, "", "%v", err)
	}
}

func (d *decoder) mismatch(t *tree, want string) {
	remedy := t.remedy(want)
	if n := len(d.path); n > 0 && d.path[n-1] == "mode" && want == text.String() && t.kind == whole && len(t.text) < 4 {
		remedy = fmt.Sprintf("put it in quotes, with four digits: %q", strings.Repeat("0", 4-len(t.text))+t.text)
	}
	d.refuse(t.at, remedy, "this is %s; it must be %s", t.kind, want)
}

// remedy says how a value of the wrong kind was probably meant.
func (t *tree) remedy(want string) string {
	switch {
	case want == text.String() && (t.kind == whole || t.kind == fraction || t.kind == truth):
		return fmt.Sprintf("put it in quotes: %q", t.text)
	case want == list.String() && t.kind == text:
		return "write a list: [" + strings.Join(strings.Fields(t.text), ", ") + "]"
	case want == truth.String() && t.kind == text && slices.Contains([]string{"yes", "on", "True", "true"}, t.text):
		return "write true"
	case want == truth.String() && t.kind == text && slices.Contains([]string{"no", "off", "False", "false"}, t.text):
		return "write false"
	case (want == whole.String() || want == fraction.String()) && t.kind == text:
		return t.asNumber()
	case want == whole.String() && t.kind == fraction:
		return t.asNumber()
	}
	return ""
}

// asNumber says how to write what is nearly a number. YAML takes a plain 1e3, and one
// with too many digits, for a text.
func (t *tree) asNumber() string {
	n, err := strconv.ParseFloat(t.text, 64)
	const exact = 1 << 53
	switch {
	case t.quoted && err == nil:
		return "write it without quotes"
	case math.Abs(n) >= exact:
		return "the number is too large"
	case err == nil && n == math.Trunc(n):
		return "write its digits: " + strconv.FormatInt(int64(n), 10)
	}
	return ""
}

func (d *decoder) scalar(t *tree, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if t.kind != text {
			d.mismatch(t, "a text")
			return
		}
		v.SetString(t.text)
	case reflect.Bool:
		if t.kind != truth {
			d.mismatch(t, "true or false")
			return
		}
		v.SetBool(t.truth)
	case reflect.Int, reflect.Int64, reflect.Int32:
		d.integer(t, v)
	case reflect.Float64:
		switch n := t.number.(type) {
		case float64:
			v.SetFloat(n)
		case int64:
			v.SetFloat(float64(n))
		case uint64:
			v.SetFloat(float64(n))
		default:
			d.mismatch(t, "a number")
		}
	default:
		panic(fmt.Sprintf("config: a field of type %s cannot be read from YAML", v.Type()))
	}
}

func (d *decoder) integer(t *tree, v reflect.Value) {
	if t.kind != whole {
		d.mismatch(t, "a whole number")
		return
	}
	n, ok := t.number.(int64)
	if u, unsigned := t.number.(uint64); unsigned && u <= 1<<62 {
		n, ok = int64(u), true
	}
	if !ok || v.OverflowInt(n) {
		d.refuse(t.at, "", "the number is too large")
		return
	}
	v.SetInt(n)
}

func (d *decoder) slice(t *tree, v reflect.Value) {
	if t.kind != list {
		d.mismatch(t, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(t.items), len(t.items))
	for i, item := range t.items {
		d.below(strconv.Itoa(i), item, item.at, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) mapping(t *tree, v reflect.Value) {
	if t.kind != mapping {
		d.mismatch(t, "a mapping")
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(t.entries))
	for _, e := range t.entries {
		value := reflect.New(v.Type().Elem()).Elem()
		d.below(e.key, e.value, e.at, value)
		out.SetMapIndex(reflect.ValueOf(e.key).Convert(v.Type().Key()), value)
	}
	v.Set(out)
}

// keyed fills a slice of structs from a mapping, in its order.
func (d *decoder) keyed(t *tree, v reflect.Value, key string) {
	if t.kind != mapping {
		d.mismatch(t, "a mapping")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(t.entries), len(t.entries))
	for i, e := range t.entries {
		d.below(e.key, e.value, e.at, out.Index(i))
		out.Index(i).FieldByName(key).SetString(e.key)
	}
	v.Set(out)
}

func (d *decoder) structure(t *tree, v reflect.Value) {
	if t.kind != mapping {
		d.mismatch(t, "a mapping")
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range t.entries {
		f, known := fields.byName[e.key]
		if !known {
			d.unknown(e, fields.names)
			continue
		}
		d.field(e, v.FieldByIndex(f.Index), f)
	}
	for _, name := range fields.names {
		if _, given := t.entry(name); !given && checks(fields.byName[name], "required") {
			d.refuse(t.at, "", "the key `%s` is missing", name)
		}
	}
}

func (d *decoder) field(e entry, v reflect.Value, f reflect.StructField) {
	defer d.in(e.value)()
	before := len(d.found)
	if key := f.Tag.Get("keyed"); key != "" && e.value.kind != nothing {
		d.path = append(d.path, e.key)
		d.keyed(e.value, v, key)
		d.path = d.path[:len(d.path)-1]
		return
	}
	d.below(e.key, e.value, e.at, v)
	if len(d.found) > before || !checks(f, "positive") {
		return
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.CanInt() && v.Int() <= 0 {
		d.path = append(d.path, e.key)
		d.refuse(e.value.at, "", "%s is not above zero", e.value.text)
		d.path = d.path[:len(d.path)-1]
	}
}

func checks(f reflect.StructField, what string) bool {
	return slices.Contains(strings.Split(f.Tag.Get("check"), ","), what)
}

func (d *decoder) unknown(e entry, names []string) {
	defer d.in(e.value)()
	remedy := "the keys here are " + strings.Join(names, ", ")
	if near := nearest(e.key, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	before := len(d.found)
	if d.keeps(e.key) {
		remedy = "a key is not written here: your own configuration names its place, key_env: VARIABLE or key_file: FILE, under `endpoints` or model.openai"
	}
	d.refuse(e.at, remedy, "unknown key %q", e.key)
	if len(d.found) > before && (d.keeps(e.key) || d.ofModel()) {
		d.found[before].Excerpt = hidden
	}
}

// secretName is how a key of a file is called under which somebody writes a secret.
var secretName = regexp.MustCompile(`(?i)key|secret|token|password|authorization|bearer`)

// keeps reports whether a secret was probably written under an unknown key.
func (d *decoder) keeps(key string) bool { return secretName.MatchString(key) }

// ofModel reports whether the decoder is at what a model is asked with.
func (d *decoder) ofModel() bool {
	return len(d.path) > 0 && (d.path[0] == "endpoints" || d.path[0] == "model" && slices.Contains(d.path, KindOpenAI))
}

// fields are the keys that a struct reads, in its order; those of embedded structs are
// its own.
type fields struct {
	names  []string
	byName map[string]reflect.StructField
}

func fieldsOf(t reflect.Type) fields {
	out := fields{byName: map[string]reflect.StructField{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		out.names = append(out.names, name)
		out.byName[name] = f
	}
	return out
}
