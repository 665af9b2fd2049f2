package suite

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// Ending is that of the files that a folder is searched for; .yml is the same.
const Ending = ".yaml"

// ends reports whether a file has such an ending.
func ends(path string) bool {
	ext := filepath.Ext(path)
	return ext == Ending || ext == ".yml"
}

// Case is one scenario of a suite: a file, or one combination of its matrix.
type Case struct {
	Name  string `json:"name"` // the file's path without ending, and the combination; unique
	Title string `json:"title"`
	File  string `json:"file"`

	name string // of the scenario within its file
}

// Found is what a search came to.
type Found struct {
	Cases    []Case
	Passed   []string // YAML files that hold no scenario
	Warnings []string // of the configurations, each once, and of what looks like a scenario and is passed over
}

// Find looks for scenarios. Each path is a file, a folder, which is searched with all
// below it for files that end in .yaml or .yml, or a pattern of [filepath.Match]. Below a
// folder, those called testdata or with a dot at their beginning, and links to folders,
// are not entered. Files that hold no `scenario:` are passed over, with a warning where
// one looks as if it were to hold it. A file that is
// reached twice is one.
//
// All files that cannot be read are one error, which names each; then no suite should
// be run. An empty result is no error.
func Find(paths []string, o scenarios.LoadOptions) (Found, error) {
	var found Found
	files, err := search(paths)
	errs := []error{err}
	warned, said := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		cases, warnings, err := load(file, o)
		switch {
		case err != nil && said[err.Error()]: // of a configuration that several share
		case err != nil:
			said[err.Error()] = true
			errs = append(errs, err)
		case len(cases) == 0:
			found.Passed = append(found.Passed, file)
		}
		for _, w := range warnings {
			if !warned[w] {
				warned[w] = true
				found.Warnings = append(found.Warnings, w)
			}
		}
		found.Cases = append(found.Cases, cases...)
	}
	return found, errors.Join(append(errs, unique(found.Cases)...)...)
}

// unique lists the names that two cases have.
func unique(cases []Case) []error {
	var errs []error
	seen := map[string]Case{}
	for _, c := range cases {
		if was, ok := seen[c.Name]; ok {
			errs = append(errs, fmt.Errorf("two cases are called %q: one of %q, one of %q; rename one of the files", c.Name, was.File, c.File))
		}
		seen[c.Name] = c
	}
	return errs
}

// search lists the files of paths, each once, in order.
func search(paths []string) ([]string, error) {
	var s searcher
	for _, path := range paths {
		s.add(path)
	}
	return s.files, errors.Join(s.errs...)
}

type searcher struct {
	files []string
	infos []fs.FileInfo
	errs  []error
}

func (s *searcher) add(path string) {
	if path == "" {
		s.errs = append(s.errs, errors.New("find scenarios: a path is empty"))
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, `*?[`):
		s.match(path)
	case err != nil:
		s.errs = append(s.errs, fmt.Errorf("find scenarios: %w", err))
	case info.IsDir():
		s.walk(path)
	default:
		s.file(path, info)
	}
}

// match adds what a pattern stands for.
func (s *searcher) match(pattern string) {
	matches, err := filepath.Glob(pattern)
	switch {
	case err != nil:
		s.errs = append(s.errs, fmt.Errorf("find scenarios: pattern %q: %w", pattern, err))
	case len(matches) == 0:
		s.errs = append(s.errs, fmt.Errorf("find scenarios: nothing matches %q", pattern))
	}
	for _, m := range matches {
		if !strings.HasPrefix(filepath.Base(m), ".") || strings.HasPrefix(filepath.Base(pattern), ".") { // as shells do
			s.add(m)
		}
	}
}

// walk adds the files of a folder and of those below it.
func (s *searcher) walk(root string) {
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			s.errs = append(s.errs, fmt.Errorf("find scenarios: %w", err))
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
		case path != root && e.IsDir() && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata"):
			return fs.SkipDir
		case !e.IsDir() && ends(path):
			s.add(path) // follows a link to a file
		}
		return nil
	})
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("find scenarios: %w", err))
	}
}

// file adds a file, unless it is there already under this or another name.
func (s *searcher) file(path string, info fs.FileInfo) {
	if slices.ContainsFunc(s.infos, func(has fs.FileInfo) bool { return os.SameFile(has, info) }) {
		return
	}
	s.files = append(s.files, filepath.Clean(path))
	s.infos = append(s.infos, info)
}

// load reads the cases of a file; none if it holds no scenario.
func load(file string, o scenarios.LoadOptions) ([]Case, []string, error) {
	keys, err := topKeys(file)
	switch {
	case err != nil:
		return nil, nil, err
	case !slices.Contains(keys, "scenario"):
		return nil, suspicion(file, keys), nil
	}
	loaded, err := scenarios.LoadCases(file, o)
	if placed := new(config.Error); err != nil && !errors.As(err, &placed) {
		err = fmt.Errorf("load %q: %w", file, err)
	}
	if err != nil {
		return nil, nil, err
	}
	var cases []Case
	var warnings []string
	for _, s := range loaded {
		cases = append(cases, Case{
			Name: caseName(file, s.Case), Title: s.Title, File: file, name: s.Name(),
		})
		for _, w := range s.Config.Warnings {
			warnings = append(warnings, w.String())
		}
	}
	return cases, warnings, nil
}

// caseName is the path of a file without its ending, and the case as it is called: values
// of a matrix are no part of a path.
func caseName(file, of string) string {
	name := strings.TrimSuffix(filepath.ToSlash(filepath.Clean(file)), filepath.Ext(file))
	if of != "" {
		name += "[" + of + "]"
	}
	return name
}

// suspicion is the warning of a file that is passed over and looks like a scenario.
func suspicion(file string, keys []string) []string {
	if included(file) {
		return nil
	}
	for _, key := range keys {
		if config.Nearest(key, []string{"scenario"}) != "" {
			return []string{fmt.Sprintf("%s: passed over: it holds %q and no `scenario:`, which makes it one", file, key)}
		}
	}
	if slices.Contains(keys, "task") && slices.Contains(keys, "expect") {
		return []string{file + ": passed over: it holds `task` and `expect`, and no `scenario:`, which makes it a scenario"}
	}
	return nil
}

// included reports whether a file beside this one includes it: then it is a part.
func included(file string) bool {
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.y*ml"))
	return slices.ContainsFunc(beside, func(other string) bool {
		if info, err := os.Stat(other); err != nil || !info.Mode().IsRegular() || info.Size() > config.MaxFile {
			return false // a pipe would be waited for
		}
		data, err := os.ReadFile(other)
		return err == nil && strings.Contains(string(data), "\ninclude: "+filepath.Base(file)+"\n")
	})
}

// topKeys lists the keys at the top of a file.
func topKeys(file string) ([]string, error) {
	switch info, err := os.Stat(file); {
	case err != nil:
		return nil, fmt.Errorf("find scenarios: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("find scenarios: %q is no ordinary file", file)
	case info.Size() > config.MaxFile:
		return nil, fmt.Errorf("find scenarios: %q has more than %d bytes", file, config.MaxFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("find scenarios: %w", err)
	}
	return config.TopKeys(file, data)
}

// Select keeps the cases whose name an expression matches; nil keeps all. If it matches
// none it is taken for a name, or a part of one, as it is printed: those of combinations
// hold brackets.
func Select(cases []Case, re *regexp.Regexp) []Case {
	if re == nil {
		return cases
	}
	for _, match := range []func(string) bool{
		re.MatchString,
		func(name string) bool { return name == re.String() },
		func(name string) bool { return strings.Contains(name, re.String()) },
	} {
		if some := slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return !match(c.Name) }); len(some) > 0 {
			return some
		}
	}
	return nil
}

// Shuffle returns the cases in an order that the seed alone decides.
func Shuffle(cases []Case, seed uint64) []Case {
	mixed := slices.Clone(cases)
	slices.SortFunc(mixed, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return mixed
}
