package embedded

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCheckFileSystem_RefusesNetworks(t *testing.T) {
	for name, c := range map[string]struct {
		magic   int64
		refused bool
	}{
		"NFS":              {unix.NFS_SUPER_MAGIC, true},
		"SMB":              {unix.SMB_SUPER_MAGIC, true},
		"CIFS":             {unix.CIFS_SUPER_MAGIC, true},
		"CIFS, signed":     {int64(int32(-11317950)), true},
		"SMB 2":            {unix.SMB2_SUPER_MAGIC, true},
		"FUSE":             {unix.FUSE_SUPER_MAGIC, true},
		"Ceph":             {unix.CEPH_SUPER_MAGIC, true},
		"AFS":              {unix.AFS_SUPER_MAGIC, true},
		"9P":               {unix.V9FS_MAGIC, true},
		"ext4":             {unix.EXT4_SUPER_MAGIC, false},
		"XFS":              {unix.XFS_SUPER_MAGIC, false},
		"Btrfs":            {unix.BTRFS_SUPER_MAGIC, false},
		"tmpfs":            {unix.TMPFS_MAGIC, false},
		"overlay":          {unix.OVERLAYFS_SUPER_MAGIC, false},
		"an unknown local": {0x12345678, false},
	} {
		err := checkMagic("/state", c.magic)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v, refused should be %t", name, err, c.refused)
		}
		if err != nil && !strings.Contains(err.Error(), "--state") {
			t.Errorf("%s: no remedy in %v", name, err)
		}
	}
}
