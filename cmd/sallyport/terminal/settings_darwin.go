package terminal

import "golang.org/x/sys/unix"

// The requests that read and write a terminal's settings.
const (
	getSettings = unix.TIOCGETA
	setSettings = unix.TIOCSETA
)

// discard flushes the terminal's input; 1 is FREAD of <fcntl.h>.
func discard(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, 1) }
