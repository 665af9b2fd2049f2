package scriptserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// files are what a script writes and reads, and nothing outside of them.
type files struct{ root *os.Root } // nil without a folder

// openFiles makes the folder's files.
func openFiles(folder string) (files, error) {
	if folder == "" {
		return files{}, nil
	}
	dir := filepath.Join(folder, FilesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return files{}, fmt.Errorf("make the folder of a scripted server: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return files{}, fmt.Errorf("open the folder of a scripted server: %w", err)
	}
	return files{root}, nil
}

func (f files) close() {
	if f.root != nil {
		_ = f.root.Close() // nothing is held back in it
	}
}

func (f files) read(name string) ([]byte, error) {
	if f.root == nil {
		return nil, fs.ErrNotExist
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxText+1))
}

func (f files) exists(name string) bool {
	if f.root == nil {
		return false
	}
	_, err := f.root.Lstat(name)
	return err == nil
}

// write performs one write and returns the name of the file.
func (f files) write(w Write, s scene) (string, error) {
	at, err := s.render(&w.File)
	if err != nil {
		return "", err
	}
	content, err := s.render(w.Content)
	if err != nil {
		return "", err
	}
	name := string(at)
	if f.root == nil {
		return name, errors.New("write a file: the server has no folder")
	}
	if w.Remove {
		if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return name, fmt.Errorf("remove a file: %w", err)
		}
		return name, nil
	}
	if err := f.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return name, fmt.Errorf("make a folder: %w", err)
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if w.Append {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	file, err := f.root.OpenFile(name, mode, 0o600)
	if err != nil {
		return name, fmt.Errorf("write a file: %w", err)
	}
	_, err = file.Write(content)
	return name, errors.Join(err, file.Close())
}
