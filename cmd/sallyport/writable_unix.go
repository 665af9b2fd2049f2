//go:build unix

package main

import "golang.org/x/sys/unix"

// writable reports why this process cannot make files in a folder.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
