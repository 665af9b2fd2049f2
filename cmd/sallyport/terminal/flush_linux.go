package terminal

import "golang.org/x/sys/unix"

func discard(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
