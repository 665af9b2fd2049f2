package bridge

import (
	"math"

	"golang.org/x/sys/unix"
)

// sealDescriptors keeps every descriptor of the Host but the first three from a child:
// also those that the Host's own parent left open, which nothing in the Host knows of.
// What a child gets is put in its place after the fork, and is not touched.
func sealDescriptors() error {
	if unix.CloseRange(firstSealed, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return sealListed("/proc/self/fd") // before Linux 5.11, or forbidden by a sandbox
}
