//go:build !unix

package scenarios

import "errors"

func fillDisk() error { return errors.ErrUnsupported }
