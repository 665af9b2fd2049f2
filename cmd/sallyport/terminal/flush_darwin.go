package terminal

import "golang.org/x/sys/unix"

// discard flushes the terminal's input; 1 is FREAD of <fcntl.h>.
func discard(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, 1) }
