package scenarios

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"sallyport/scenarios/config"
)

// Limits of a scenario file.
const (
	// MaxCases is how many cases a matrix may come to.
	MaxCases = 200
	// MaxIncludes is how many files include one another in a row.
	MaxIncludes = 3
)

// LoadCases reads a task or scenario file: one Scenario for each case of its matrix, in
// order, or one without a matrix. All mistakes of a file are one [*config.Error], each
// with its place and what to write instead.
func LoadCases(name string, o LoadOptions) ([]*Scenario, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	variants, err := readVariants(name, data)
	if err != nil {
		return nil, err
	}
	out := make([]*Scenario, 0, len(variants))
	for _, v := range variants {
		form, err := decodeForm(v.file)
		if err != nil {
			return nil, err
		}
		s, err := load(name, v.file, form, o)
		if err != nil {
			return nil, err
		}
		s.Case = v.name
		out = append(out, s)
	}
	return out, nil
}

// variant is one case of a file.
type variant struct {
	name string
	file *config.File
}

// The keys that are read before all others, and not replaced in.
const (
	keyParameters = "parameters"
	keyMatrix     = "matrix"
	keyInclude    = "include"
)

// readVariants reads the file, what it includes, and makes its cases.
func readVariants(name string, data []byte) ([]variant, error) {
	files, err := readIncluded(name, data)
	if err != nil {
		return nil, err
	}
	whole := files[0]
	for _, f := range files[1:] {
		whole = whole.Over(f)
	}
	axes, err := matrixOf(whole)
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 && !whole.Root().Has(keyParameters) {
		return []variant{{file: whole}}, nil
	}
	values, err := parametersOf(whole, axes)
	if err != nil {
		return nil, err
	}
	var out []variant
	for _, point := range product(axes) {
		v := variant{name: point.name()}
		for i, f := range files {
			for _, p := range point {
				values[p.axis] = p.value
			}
			if f, err = f.With(values, keyParameters, keyMatrix, keyInclude); err != nil {
				return nil, err
			}
			if i == 0 {
				v.file = f
				continue
			}
			v.file = v.file.Over(f)
		}
		out = append(out, v)
	}
	return out, nil
}

// readIncluded reads a file and all that it includes, the file first, the nearest next.
func readIncluded(name string, data []byte) ([]*config.File, error) {
	first, err := config.ParseFile(name, data)
	if err != nil {
		return nil, err
	}
	files, seen := []*config.File{first}, map[string]bool{filepath.Base(name): true}
	level := []*config.File{first}
	for depth := 0; len(level) > 0; depth++ {
		var next []*config.File
		for _, f := range level {
			for _, n := range includesOf(f) {
				if depth == MaxIncludes {
					return nil, n.Problem("include what is needed here", "files are included deeper than %d levels", MaxIncludes)
				}
				in, err := include(filepath.Dir(name), n, seen)
				if err != nil {
					return nil, err
				}
				next = append(next, in)
			}
		}
		files, level = append(files, next...), next
	}
	return files, nil
}

func includesOf(f *config.File) []config.Node {
	n := f.Root().Get(keyInclude)
	switch {
	case n.IsNothing() && !f.Root().Has(keyInclude):
		return nil
	case n.IsList():
		return n.Items()
	}
	return []config.Node{n}
}

// include reads one file of the same folder.
func include(dir string, n config.Node, seen map[string]bool) (*config.File, error) {
	file, ok := n.Text()
	switch {
	case !ok || file == "":
		return nil, n.Problem("write `include: FILE`, or a list of files", "this names no file")
	case filepath.Base(file) != file:
		return nil, n.Problem("put the file beside the scenario, and name it alone", "%q is in another folder", file)
	case seen[file]:
		return nil, n.Problem("remove it here", "%q is included already", file)
	}
	seen[file] = true
	path := filepath.Join(dir, file)
	data, err := readFile(path)
	if err != nil {
		return nil, n.Problem("name a file beside this one", "%v", err)
	}
	return config.ParseFile(path, data)
}

// axis is one parameter of a matrix with its values.
type axis struct {
	name   string
	labels []string
	values []config.Node
}

// matrixOf reads the matrix: for each parameter a list of values, or a mapping that
// gives each value a name.
func matrixOf(f *config.File) ([]axis, error) {
	n := f.Root().Get(keyMatrix)
	if !f.Root().Has(keyMatrix) {
		return nil, nil
	}
	if !n.IsMapping() {
		return nil, n.Problem("write `matrix: {NAME: [VALUE, VALUE]}`", "this is no matrix")
	}
	var axes []axis
	cases := 1
	for _, name := range n.Keys() {
		a, err := axisOf(name, n.Get(name))
		if err != nil {
			return nil, err
		}
		axes = append(axes, a)
		if cases *= len(a.values); cases > MaxCases {
			return nil, n.Get(name).Problem("take some values out", "the matrix has more than %d cases", MaxCases)
		}
	}
	return axes, nil
}

func axisOf(name string, n config.Node) (axis, error) {
	a := axis{name: name}
	seen := map[string]bool{}
	add := func(label string, value config.Node) error {
		if seen[label] {
			return value.Problem("give the values names: `NAME: {LABEL: VALUE}`", "two values are called %q", label)
		}
		seen[label] = true
		a.labels, a.values = append(a.labels, label), append(a.values, value)
		return nil
	}
	for i, item := range n.Items() {
		label, ok := item.Scalar()
		if !ok || len(label) > maxLabel || strings.ContainsAny(label, "\n,=[]") {
			label = fmt.Sprint(i + 1)
		}
		if err := add(label, item); err != nil {
			return a, err
		}
	}
	for _, label := range n.Keys() {
		if err := add(label, n.Get(label)); err != nil {
			return a, err
		}
	}
	if len(a.values) == 0 {
		return a, n.Problem("write `[VALUE, VALUE]`, or `{LABEL: VALUE}`", "the parameter has no values")
	}
	return a, nil
}

// parameterName is how a parameter may be called.
var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// maxLabel bounds, in bytes, what of a value becomes part of a case's name.
const maxLabel = 40

// parametersOf reads the parameters. One that the matrix varies needs no other value.
func parametersOf(f *config.File, axes []axis) (map[string]config.Node, error) {
	values := map[string]config.Node{}
	n := f.Root().Get(keyParameters)
	if f.Root().Has(keyParameters) && !n.IsMapping() {
		return nil, n.Problem("write `parameters: {NAME: VALUE}`", "these are no parameters")
	}
	for _, name := range n.Keys() {
		if !parameterName.MatchString(name) {
			return nil, n.Get(name).Problem("write a word of a-z, 0-9 and _", "%q is no name of a parameter", name)
		}
		values[name] = n.Get(name)
	}
	for _, a := range axes {
		if !parameterName.MatchString(a.name) {
			return nil, a.values[0].Problem("write a word of a-z, 0-9 and _", "%q is no name of a parameter", a.name)
		}
	}
	return values, nil
}

// point is one case: a value for each axis.
type point []struct {
	axis, label string
	value       config.Node
}

func (p point) name() string {
	parts := make([]string, len(p))
	for i, at := range p {
		parts[i] = at.axis + "=" + at.label
	}
	return strings.Join(parts, ",")
}

// product lists the cases, the last axis varying first.
func product(axes []axis) []point {
	out := []point{nil}
	for _, a := range axes {
		var next []point
		for _, p := range out {
			for i, v := range a.values {
				next = append(next, append(p[:len(p):len(p)], struct {
					axis, label string
					value       config.Node
				}{a.name, a.labels[i], v}))
			}
		}
		out = next
	}
	return out
}

// ErrSeveral: the file has a matrix of more cases than one.
var ErrSeveral = errors.New("the file has several cases: play them with `sallyport test`")
