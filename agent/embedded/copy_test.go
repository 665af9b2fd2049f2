package embedded

import (
	"os"
	"os/exec"
	"testing"
)

// copyFile copies a file in a process of its own, for its owner only.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", from, err, out)
	}
	if err := os.Chmod(to, fileMode); err != nil {
		t.Fatal(err)
	}
}
