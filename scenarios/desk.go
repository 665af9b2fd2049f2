package scenarios

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sallyport/scenarios/config"
	"sallyport/workspace"
)

// MaxStagedFile bounds a file that is put on a stage, in bytes.
const MaxStagedFile = 8 << 20

// StageFile is what is put on a stage before the run begins: a file with its content,
// or something that is no ordinary file.
type StageFile struct {
	Text *string `yaml:"text"` // the content
	From string  `yaml:"from"` // a file of the scenario's folder that has the content
	Hex  *string `yaml:"hex"`  // the content's bytes, for what is no text
	// Size makes a content of so many bytes: Repeat, over and over, cut off there.
	Size     *int64 `yaml:"size"`
	Repeat   string `yaml:"repeat"`
	Mode     string `yaml:"mode"`     // permissions, such as "0644"; 0600 if absent
	Link     string `yaml:"link"`     // a symbolic link to a name of the stage, or to anything
	Hardlink string `yaml:"hardlink"` // another name of a file of the stage
	Folder   bool   `yaml:"folder"`
	FIFO     bool   `yaml:"fifo"`
	Absent   bool   `yaml:"absent"` // of sources and reports: the folder is not made
}

// UnmarshalConfig reads a text, the content, or a mapping.
func (f *StageFile) UnmarshalConfig(n config.Node) error {
	if text, ok := n.Text(); ok {
		*f = StageFile{Text: &text}
		return nil
	}
	type plain StageFile
	var p plain
	if err := n.Decode(&p); err != nil {
		return err
	}
	*f = StageFile(p)
	return nil
}

// mistake says what is wrong with a file as it was written, if anything.
func (f StageFile) mistake() (message, remedy string) {
	kinds := 0
	for _, set := range []bool{f.Text != nil, f.From != "", f.Hex != nil, f.Size != nil, f.Link != "", f.Hardlink != "", f.Folder, f.FIFO, f.Absent} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Sprintf("a file is one thing, and this is %d", kinds), "keep one of text, from, hex, size, link, hardlink, folder and fifo"
	case f.Repeat != "" && f.Size == nil:
		return "what is repeated needs an end", "add `size: BYTES`"
	case f.Size != nil && (*f.Size < 0 || *f.Size > MaxStagedFile):
		return fmt.Sprintf("a file has 0 to %d bytes", MaxStagedFile), ""
	case f.Mode != "" && !fileMode.MatchString(f.Mode):
		return fmt.Sprintf("%q is no mode", f.Mode), `write four digits in quotes, such as "0644"`
	}
	if f.Hex != nil {
		if _, err := hex.DecodeString(strings.Join(strings.Fields(*f.Hex), "")); err != nil {
			return "this is no hexadecimal text", "write two digits of 0-9 and a-f for each byte"
		}
	}
	return "", ""
}

// content is what an ordinary file holds; dir is the scenario's folder.
func (f StageFile) content(dir string) ([]byte, error) {
	switch {
	case f.Text != nil:
		return []byte(*f.Text), nil
	case f.Hex != nil:
		return hex.DecodeString(strings.Join(strings.Fields(*f.Hex), ""))
	case f.Size != nil:
		unit := f.Repeat
		if unit == "" {
			unit = "a"
		}
		return []byte(strings.Repeat(unit, int(*f.Size)/len(unit)+1)[:*f.Size]), nil
	}
	path := filepath.Join(dir, f.From)
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > MaxStagedFile:
		return nil, fmt.Errorf("%q is no ordinary file of at most %d bytes", path, MaxStagedFile)
	}
	return os.ReadFile(path)
}

// prop is a file of the stage with its name.
type prop struct {
	name string
	StageFile
}

// makeDesk makes the workspace and what the scenario puts on the stage: folders and
// files first, then what links to them, permissions last.
func (st *Stage) makeDesk() error {
	var files []prop
	for _, below := range []string{"sources", "reports"} {
		if f, own := st.Scenario.Files[below]; !own || !f.Absent && f.Link == "" {
			files = append(files, prop{below, StageFile{Folder: true}})
		}
	}
	for name, f := range st.Scenario.Files {
		if !f.Absent && !(f.Folder && (name == "sources" || name == "reports")) {
			files = append(files, prop{name, f})
		}
	}
	rank := func(f prop) int {
		switch {
		case f.Folder:
			return 0
		case f.Link != "" || f.Hardlink != "":
			return 2
		}
		return 1
	}
	slices.SortFunc(files, func(a, b prop) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Compare(a.name, b.name)
	})
	if err := os.MkdirAll(st.Desk, 0o700); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	for _, f := range files {
		if err := st.put(f); err != nil {
			return fmt.Errorf("make the workspace: %q: %w", f.name, err)
		}
	}
	for _, f := range slices.Backward(files) {
		if f.Mode == "" || f.Link != "" {
			continue
		}
		mode, err := strconv.ParseUint(f.Mode, 8, 32)
		if err == nil {
			err = os.Chmod(st.path(f.name), fs.FileMode(mode))
		}
		if err != nil {
			return fmt.Errorf("make the workspace: %w", err)
		}
	}
	return nil
}

// path is where a file of the stage lies: outside beside the workspace, all else in it.
func (st *Stage) path(name string) string {
	if name == outside || strings.HasPrefix(name, outside+"/") {
		return filepath.Join(st.Dir, filepath.FromSlash(name))
	}
	return filepath.Join(st.Desk, filepath.FromSlash(name))
}

// outside is the folder of the stage for what no tool may reach.
const outside = "outside"

func (st *Stage) put(f prop) error {
	path := st.path(f.name)
	if f.Folder {
		return os.MkdirAll(path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	switch {
	case f.Link != "":
		return os.Symlink(st.target(f.Link), path)
	case f.Hardlink != "":
		return os.Link(st.path(f.Hardlink), path)
	case f.FIFO:
		return workspace.MakeFIFO(path)
	}
	data, err := f.content(filepath.Dir(st.Scenario.File))
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// target is where a link leads: to a file of the stage if it names one, else as it is.
func (st *Stage) target(name string) string {
	if name == outside || name == "sources" || name == "reports" || checkStaged(name) == nil {
		return st.path(name)
	}
	return name
}

// unlock lets the folder be removed: a scenario may have taken its own permissions.
func (st *Stage) unlock() {
	for name, f := range st.Scenario.Files {
		if f.Folder && f.Mode != "" {
			_ = os.Chmod(st.path(name), 0o700) // it may be gone
		}
	}
}

// listing names what lies in a folder of the stage, sorted.
func (st *Stage) listing(folder string) ([]string, error) {
	entries, err := os.ReadDir(st.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}
