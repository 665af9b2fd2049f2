//go:build !linux

package embedded

import "os"

func datasync(f *os.File) error { return f.Sync() }
