package terminal

import "golang.org/x/sys/unix"

// The requests that read and write a terminal's settings.
const (
	getSettings = unix.TCGETS
	setSettings = unix.TCSETS
)

func discard(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
