package embedded

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// checkFileSystem refuses a drive on another machine.
func checkFileSystem(dir string) error {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err != nil {
		return fmt.Errorf("state directory %s: ask for its drive: %w", dir, err)
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return errNetwork(dir, "a remote drive")
	}
	return nil
}
