package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// logFile is a file that log lines are appended to, opened with the first of them.
type logFile struct {
	path   string
	folder string // made if need be; empty if it must be there

	mu   sync.Mutex
	file *os.File
	err  error
}

// Write appends one line. After a failed opening all further lines are lost, with the
// same error.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && l.err == nil {
		l.err = l.open()
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.file.Write(line)
}

func (l *logFile) open() error {
	if l.folder != "" {
		if err := os.MkdirAll(l.folder, 0o700); err != nil {
			return fmt.Errorf("make the log folder: %w", err)
		}
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file = f
	return nil
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // lines are written one by one; nothing is buffered
		l.file, l.err = nil, errors.New("the log is closed")
	}
}
