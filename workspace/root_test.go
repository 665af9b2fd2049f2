//go:build root && linux

package workspace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What only root can set up: mounts, devices, small and broken disks. These tests fail without root.

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests set up mounts and devices: run them as root")
	}
}

func mount(t *testing.T, from, to, kind string, flags uintptr, data string) {
	t.Helper()
	must(t, unix.Mount(from, to, kind, flags, data))
	t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
}

// CHECKS 18, CASES X3: a file mounted over another, and a mounted folder, are not of this workspace.
func TestRoot_MountsInSourcesAreRefused(t *testing.T) {
	needRoot(t)
	w, root := desk(t, callsNamed("best"))
	outside := filepath.Join(t.TempDir(), "outside.md")
	must(t, os.WriteFile(outside, []byte("secret"), 0o644))
	source(t, root, "a.md", "text")
	mount(t, outside, filepath.Join(root, "sources", "a.md"), "", unix.MS_BIND, "")
	if got, err := w.Read(t.Context(), "a.md"); !errors.Is(err, ErrForeign) {
		t.Errorf("%q, %v", got, err)
	}
	if got := search(t, w, "secret", 3); got.Skipped != 1 || len(got.Hits) != 0 {
		t.Errorf("%+v", got)
	}
}

// A folder that is itself a mount, as in a container, works.
func TestRoot_MountedFoldersWork(t *testing.T) {
	needRoot(t)
	everyCalls(t, func(t *testing.T, c calls) {
		root := newRoot(t)
		for _, folder := range []string{"sources", "reports"} {
			mount(t, "tmpfs", filepath.Join(root, folder), "tmpfs", 0, "size=1m")
		}
		source(t, root, "a.md", "text")
		w, err := open(root, c)
		must(t, err)
		defer func() { must(t, w.Close()) }()
		if got, err := w.Read(t.Context(), "a.md"); err != nil || string(got) != "text" {
			t.Errorf("%q %v", got, err)
		}
		if outcome, err := w.Save(t.Context(), "a.md", []byte("text")); outcome != SaveCreated {
			t.Errorf("%v %v", outcome, err)
		}
	})
}

// CHECKS 18: devices, also ones that would block or act when they are opened.
func TestRoot_DevicesAreRefused(t *testing.T) {
	needRoot(t)
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		for name, device := range map[string]uint64{
			"null.md": unix.Mkdev(1, 3), "zero.md": unix.Mkdev(1, 5), "tty.md": unix.Mkdev(5, 0), "none.md": unix.Mkdev(240, 240),
		} {
			must(t, unix.Mknod(filepath.Join(root, "sources", name), unix.S_IFCHR|0o666, int(device)))
			within(t, time.Second, func() {
				if got, err := w.Read(t.Context(), name); !errors.Is(err, ErrNotRegular) {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			})
		}
		must(t, unix.Mknod(filepath.Join(root, "sources", "block.md"), unix.S_IFBLK|0o666, int(unix.Mkdev(240, 240))))
		if got, err := w.Read(t.Context(), "block.md"); !errors.Is(err, ErrNotRegular) {
			t.Errorf("block device: %q, %v", got, err)
		}
		if got := search(t, w, "x", 3); got.Skipped != 5 {
			t.Errorf("%+v", got)
		}
	})
}

// CHECKS 85: a full disk, of bytes or of inodes, and one that is read only.
func TestRoot_FullDiskIsNotWritten(t *testing.T) {
	needRoot(t)
	everyCalls(t, func(t *testing.T, c calls) {
		for name, options := range map[string]string{"bytes": "size=64k", "inodes": "nr_inodes=4"} {
			root := newRoot(t)
			reports := filepath.Join(root, "reports")
			mount(t, "tmpfs", reports, "tmpfs", 0, options)
			w, err := open(root, c)
			must(t, err)
			defer func() { must(t, w.Close()) }()
			content := []byte(strings.Repeat("x", MaxFileBytes))
			var outcome SaveOutcome
			saved := 0
			for ; saved < 10; saved++ {
				if outcome, err = w.Save(t.Context(), fmt.Sprintf("r%d.md", saved), content); outcome != SaveCreated {
					break
				}
			}
			want := SaveNotWritten
			if name == "inodes" && !c.tmpfile {
				want = SaveUnknown // tmpfs counts the second name of the draft: it is the link that fails
			}
			if outcome != want || !errors.Is(err, unix.ENOSPC) || saved == 0 {
				t.Errorf("%s: after %d reports: %v %v", name, saved, outcome, err)
			}
			list, err := os.ReadDir(reports)
			must(t, err)
			if len(list) != saved {
				t.Errorf("%s: %d entries after %d reports", name, len(list), saved)
			}
			must(t, os.Remove(filepath.Join(reports, "r0.md")))
			if outcome, err := w.Save(t.Context(), "again.md", content); outcome != SaveCreated {
				t.Errorf("%s: after room was made: %v %v", name, outcome, err)
			}
			must(t, unix.Mount("", reports, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			if outcome, err := w.Save(t.Context(), "ro.md", content); outcome != SaveNotWritten {
				t.Errorf("%s: read only: %v %v", name, outcome, err)
			}
		}
	})
}

// SPEC D5: what was called created, spent or voided is there after a power cut. The
// file system is stopped without writing its journal, as if the power went.
func TestRoot_SavedAndSpentSurviveAPowerCut(t *testing.T) {
	needRoot(t)
	everyCalls(t, func(t *testing.T, c calls) {
		image, disk := filepath.Join(t.TempDir(), "image"), t.TempDir()
		must(t, os.WriteFile(image, nil, 0o600))
		must(t, os.Truncate(image, 32<<20))
		run(t, "mkfs.ext4", "-q", image)
		run(t, "mount", "-o", "loop", image, disk)
		t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
		root, dir := filepath.Join(disk, "desk"), filepath.Join(disk, "ledger")
		for _, path := range []string{root, filepath.Join(root, "sources"), filepath.Join(root, "reports"), dir} {
			must(t, os.Mkdir(path, 0o700))
		}
		unix.Sync()
		w, err := open(root, c)
		must(t, err)
		l, err := OpenLedger(dir, w)
		must(t, err)
		held := lock(t, l)
		must(t, held.Spend(idA))
		_, err = held.Void(idB)
		must(t, err)
		held.Release()
		if outcome, err := w.Save(t.Context(), "report.md", []byte(childContent)); outcome != SaveCreated {
			t.Fatal(outcome, err)
		}
		cutPower(t, disk)
		must(t, l.Close())
		must(t, w.Close())
		run(t, "umount", disk)
		run(t, "mount", "-o", "loop", image, disk)
		got, err := os.ReadFile(filepath.Join(root, "reports", "report.md"))
		if err != nil || string(got) != childContent {
			t.Errorf("report: %d bytes, %v", len(got), err)
		}
		w, err = open(root, c)
		must(t, err)
		l, err = OpenLedger(dir, w)
		must(t, err)
		states(t, l, map[string]CandidateState{idA: CandidateSpent, idB: CandidateVoided})
		must(t, l.Close())
		must(t, w.Close())
		run(t, "umount", disk)
	})
}

// cutPower stops the file system at once, without its journal.
func cutPower(t *testing.T, disk string) {
	t.Helper()
	const shutdown, withoutLog = 0x8004587d, 2 // FS_IOC_SHUTDOWN, FS_SHUTDOWN_FLAGS_NOLOGFLUSH
	f, err := os.Open(disk)
	must(t, err)
	defer func() { _ = f.Close() }()
	must(t, unix.IoctlSetPointerInt(int(f.Fd()), shutdown, withoutLog))
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
