package workspace

import (
	"strings"
	"testing"
)

// CHECKS 17, CASES X4.
func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a.md": true, "A.md": true, "9.md": true, "a-b_C9.md": true, "a-.md": true, "md.md": true,
		strings.Repeat("a", 64) + ".md": true,
		strings.Repeat("a", 65) + ".md": false,
		"-a.md":                         false, "_a.md": false, ".md": false, "a.MD": false, "a.Md": false, "a": false, "amd": false,
		"a.b.md": false, "a b.md": false, "a.md\n": false, "\na.md": false, "a.md ": false, " a.md": false,
		"a\x00.md": false, "ａ.md": false, "é.md": false, "a\xff.md": false, "": false,
		"../a.md": false, "/etc/a.md": false, "a/b.md": false, `a\b.md`: false, "..md": false, "...md": false, "..": false, ".": false,
		"A.MD": false, "a.md.md": false, "a.txt": false, "a:b.md": false, "~.md": false,
		".sallyport-draft-X.md": false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v, want %v", name, got, want)
		}
	}
}
