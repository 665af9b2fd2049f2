//go:build !linux && !darwin

package workspace

import (
	"errors"
	"testing"
)

// Where files cannot be held safely, the workspace says so and nothing else happens.
func TestOpen_IsRefusedOnThisSystem(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
}
