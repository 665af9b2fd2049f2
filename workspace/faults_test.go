//go:build faults && linux

package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// These tests let strace fail, or kill, one system call of a save in a child, for every system call that a
// save makes: first a trace lists them, then each gets its turn (CHECKS 84, 85, CASES A2). They need strace.

// traced are the system calls that a save may make.
const traced = "openat,openat2,write,fchmod,fstat,newfstatat,fsync,linkat,unlinkat,close,read"

// step is one system call of a save: the n-th of its name in the child's main thread.
type step struct {
	name string
	n    int
	text string
}

// strace runs a save under strace and returns the outcome that it printed and how strace ended.
func strace(t *testing.T, root, calls, trace string, inject ...string) (outcome string, err error) {
	t.Helper()
	args := []string{"-f", "-o", trace, "-e", "trace=" + traced}
	for _, fault := range inject {
		args = append(args, "-e", "inject="+fault)
	}
	cmd := exec.Command("strace", append(args, os.Args[0])...)
	cmd.Env = append(os.Environ(), childEnv+"=save "+root+" "+calls)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

var traceLine = regexp.MustCompile(`^(\d+) +([a-z0-9]+)\((.*)$`)

// steps traces a save that succeeds and returns its system calls from the creation of the draft to the end.
func steps(t *testing.T, calls string) []step {
	t.Helper()
	root, trace := newRoot(t), filepath.Join(t.TempDir(), "trace")
	if outcome, err := strace(t, root, calls, trace); outcome != "created" {
		t.Fatalf("traced save: %q %v", outcome, err)
	}
	text, err := os.ReadFile(trace)
	must(t, err)
	counts := map[string]int{}
	var main string
	var all []step
	begin := -1
	for line := range strings.Lines(string(text)) {
		found := traceLine.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		if main == "" {
			main = found[1]
		}
		if found[1] != main {
			continue
		}
		counts[found[2]]++
		if found[2] == "write" && strings.HasPrefix(found[3], "1, ") {
			break // the outcome is printed
		}
		if strings.Contains(found[3], "O_TMPFILE") || strings.Contains(found[3], draftPrefix) && found[2] == "openat" {
			begin = len(all) // the last such call: the first is the question whether it exists
		}
		all = append(all, step{found[2], counts[found[2]], strings.TrimSpace(found[3])})
	}
	if begin < 0 {
		t.Fatalf("no draft in the trace:\n%s", text)
	}
	all = all[begin:]
	for _, want := range []string{"write", "fchmod", "fsync", "linkat", "close"} {
		if indexOf(all, want) < 0 {
			t.Fatalf("no %s among %v", want, all)
		}
	}
	return all
}

func indexOf(all []step, name string) int {
	for i, s := range all {
		if s.name == name {
			return i
		}
	}
	return -1
}

// CHECKS 84, 85, SPEC D8: each system call fails once. Before linkat the outcome is "not written" and nothing is
// there; from linkat on it is "unknown", and what is there is whole. Only the last close, of the file that
// was read back, changes nothing any more.
func TestFaults_EveryFailureIsReportedTruthfully(t *testing.T) {
	for _, calls := range []string{"best", "portable"} {
		all := steps(t, calls)
		link := indexOf(all, "linkat")
		for i, at := range all {
			for _, errno := range []string{"EIO", "ENOSPC"} {
				t.Run(fmt.Sprintf("%s/%d-%s-%s", calls, i, at.name, errno), func(t *testing.T) {
					root := newRoot(t)
					outcome, err := strace(t, root, calls, os.DevNull, fmt.Sprintf("%s:error=%s:when=%d", at.name, errno, at.n))
					must(t, err)
					want := SaveUnknown.String()
					switch {
					case i < link:
						want = SaveNotWritten.String()
					case i == len(all)-1 && at.name == "close":
						want = SaveCreated.String()
					}
					if outcome != want {
						t.Errorf("%s(%s: %q, want %q", at.name, at.text, outcome, want)
					}
					present := wholeOrAbsent(t, root, calls)
					if i <= link && present || i > link && !present {
						t.Errorf("%s(%s: file there: %v", at.name, at.text, present)
					}
					if i < link {
						onlyEntries(t, root)
					}
				})
			}
		}
	}
}

// SPEC D8: "not written" also promises that nothing is left behind.
func TestFaults_ADraftThatCannotBeRemovedLeavesDoubt(t *testing.T) {
	root := newRoot(t)
	outcome, err := strace(t, root, "portable", os.DevNull, "fsync:error=EIO:when=1", "unlinkat:error=EIO:when=1")
	must(t, err)
	if outcome != SaveUnknown.String() {
		t.Errorf("%q", outcome)
	}
}

// SPEC D8: the name is taken in the last moment.
func TestFaults_EEXISTFromTheLinkIsExists(t *testing.T) {
	for _, calls := range []string{"best", "portable"} {
		root := newRoot(t)
		outcome, err := strace(t, root, calls, os.DevNull, "linkat:error=EEXIST:when=1")
		must(t, err)
		if outcome != SaveExists.String() {
			t.Errorf("%s: %q", calls, outcome)
		}
		onlyEntries(t, root)
	}
}

// A failed sync is never tried again: one for the file, one for the folder.
func TestFaults_AFailedSyncIsNotRepeated(t *testing.T) {
	for _, calls := range []string{"best", "portable"} {
		for when, syncs := range map[int]int{1: 1, 2: 2} {
			root, trace := newRoot(t), filepath.Join(t.TempDir(), "trace")
			_, err := strace(t, root, calls, trace, fmt.Sprintf("fsync:error=EIO:when=%d", when))
			must(t, err)
			text, err := os.ReadFile(trace)
			must(t, err)
			if got := strings.Count(string(text), "fsync("); got != syncs {
				t.Errorf("%s: %d syncs, want %d", calls, got, syncs)
			}
		}
	}
}

// CASES A2: the process is killed as it makes each of its system calls. Whatever is there then is whole.
func TestFaults_KilledAtEveryCall(t *testing.T) {
	for _, calls := range []string{"best", "portable"} {
		all := steps(t, calls)
		link := indexOf(all, "linkat")
		for i, at := range all {
			root := newRoot(t)
			outcome, err := strace(t, root, calls, os.DevNull, fmt.Sprintf("%s:signal=KILL:when=%d", at.name, at.n))
			if err == nil || outcome != "" {
				t.Errorf("%s %d: %s(%s was not killed: %q", calls, i, at.name, at.text, outcome)
			}
			present := wholeOrAbsent(t, root, calls)
			if i < link && present || i > link && !present {
				t.Errorf("%s %d: %s(%s: file there: %v", calls, i, at.name, at.text, present)
			}
			if calls == "best" && !present {
				onlyEntries(t, root)
			}
		}
	}
}

// wholeOrAbsent reports whether the report is there, and fails the test if it is there in part, with another
// mode, or beside something else. The portable way may leave its temporary name.
func wholeOrAbsent(t *testing.T, root, calls string) bool {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(root, "reports"))
	must(t, err)
	there := false
	for _, entry := range list {
		switch name := entry.Name(); {
		case name == "report.md":
			there = true
			path := filepath.Join(root, "reports", name)
			content, err := os.ReadFile(path)
			must(t, err)
			info, err := os.Stat(path)
			must(t, err)
			if string(content) != childContent || info.Mode() != 0o600 {
				t.Errorf("%d of %d bytes, mode %v", len(content), len(childContent), info.Mode())
			}
		case calls == "portable" && strings.HasPrefix(name, draftPrefix):
		default:
			t.Errorf("reports holds %q", name)
		}
	}
	return there
}

// SPEC D2, CHECKS 11: a name outside the rule costs no system call.
func TestFaults_BadNamesCostNoSystemCall(t *testing.T) {
	root, trace := newRoot(t), filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=names "+root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(trace)
	must(t, err)
	var between []string
	inside := false
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"names end`) {
			inside = false
		}
		// Calls of the runtime's own threads, and what a thread that waits is made of, are not ours.
		if inside && regexp.MustCompile(`^\d+ +[a-z]*(open|stat|access|read|link|getdents|mkdir|rename|chdir)`).MatchString(line) {
			between = append(between, line)
		}
		if strings.Contains(line, `"names begin`) {
			inside = true
		}
	}
	if !strings.Contains(string(text), `"names begin`) || !strings.Contains(string(text), `"good.md"`) || len(between) > 0 {
		t.Errorf("calls between the marks: %q", between)
	}
}
