//go:build !unix

package grant

import (
	"fmt"
	"os"
)

// openKeyFile refuses: without owner and mode bits nothing here can tell whether
// a private key is private.
func openKeyFile(string) (*os.File, error) {
	return nil, fmt.Errorf("%w: private key files need Unix file permissions", ErrKeyFile)
}
