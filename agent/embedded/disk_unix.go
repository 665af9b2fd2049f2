//go:build linux || darwin

package embedded

import "golang.org/x/sys/unix"

// full reports whether the disk of a folder has no room for a page of the files of
// SQLite, or for one more file.
func full(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	return st.Bavail*uint64(st.Bsize) < 64<<10 || st.Files > 0 && st.Ffree == 0
}

// room is how many bytes of the disk of a folder are free for this user; false if it is
// not known.
func room(dir string) (int64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(min(st.Bavail*uint64(st.Bsize), 1<<62)), true
}
