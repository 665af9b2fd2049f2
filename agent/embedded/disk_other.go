//go:build !linux && !darwin

package embedded

// full is not known here.
func full(string) bool { return false }

// room is not known here.
func room(string) (int64, bool) { return 0, false }
