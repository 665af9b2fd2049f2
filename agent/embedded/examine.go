package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Fitness is what a folder is like that state is, or is to be, kept in.
type Fitness struct {
	Dir    string // the folder, without symbolic links; where there is none yet, the nearest above it
	Exists bool   // the folder itself is there
	Begun  bool   // it holds a state file
	Room   int64  // bytes of its disk that are free; -1 if that is not known
}

// Examine looks at a state directory as [Open] does, and makes and changes nothing. The
// error is why Open would refuse it. It does not open the state file.
func Examine(dir string) (Fitness, error) {
	f := Fitness{Room: -1}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return f, fmt.Errorf("examine state directory %q: %w", dir, err)
	}
	switch _, err := os.Stat(dir); {
	case err == nil:
		f.Exists = true
	case errors.Is(err, fs.ErrNotExist):
	default:
		return f, fmt.Errorf("examine state directory: %w", err)
	}
	at := dir
	for !f.Exists { // the root is there
		at = filepath.Dir(at)
		if _, err := os.Stat(at); err == nil {
			break
		}
	}
	if f.Dir, err = filepath.EvalSymlinks(at); err != nil {
		return f, fmt.Errorf("examine state directory: %w", err)
	}
	if n, known := room(f.Dir); known {
		f.Room = n
	}
	if err := checkFileSystem(f.Dir); err != nil {
		return f, err
	}
	if !f.Exists {
		return f, f.above(dir)
	}
	if err := ours(f.Dir); err != nil {
		return f, err
	}
	path := filepath.Join(f.Dir, stateFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	f.Begun = true
	return f, checkFile(path)
}

// above refuses a folder that is no folder, as the nearest above a state directory that
// is to be made.
func (f Fitness) above(dir string) error {
	info, err := os.Stat(f.Dir)
	if err != nil {
		return fmt.Errorf("examine state directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("state directory %s: it cannot be made: %s is not a directory", dir, f.Dir)
	}
	return nil
}
