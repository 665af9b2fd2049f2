package embedded

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// networks are the magic numbers of file systems whose files live elsewhere: other
// machines may lock them, or a user-space program answers for what is durable.
var networks = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB 2",
	0x65735546: "FUSE",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x0bd00bd0: "Lustre",
	0x01021997: "9P",
	0x786f4256: "a VirtualBox folder",
}

// checkFileSystem refuses a network file system.
func checkFileSystem(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("state directory %s: ask for its file system: %w", dir, err)
	}
	return checkMagic(dir, int64(st.Type))
}

// checkMagic judges a magic number. It is kept in 32 bits, and some kernels sign it.
func checkMagic(dir string, magic int64) error {
	if kind, ok := networks[magic&0xffffffff]; ok {
		return errNetwork(dir, kind)
	}
	return nil
}
