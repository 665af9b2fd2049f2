package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/scenarios/config"
)

// ciFiles are the files of the page about continuous integration, by name.
func ciFiles(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/scenarios/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		head, _, _ := strings.Cut(strings.TrimPrefix(m[2], "#!/bin/sh\n"), "\n")
		files[strings.TrimLeft(head, "/# ")] = m[2]
	}
	return files
}

// The workflow files are YAML, have the keys that their service wants at the top, play
// the suite with the script, and hand over the report where it is written.
func TestCIPage_WorkflowFiles(t *testing.T) {
	files := ciFiles(t)
	for name, want := range map[string]struct {
		keys   []string
		report string // what of the results it takes; empty: the whole folder
	}{
		".github/workflows/agent.yaml": {[]string{"name", "on", "permissions", "jobs"}, "path: results"},
		".gitlab-ci.yml":               {[]string{"agent"}, "junit: results/report.xml"},
		".circleci/config.yml":         {[]string{"version", "jobs", "workflows"}, "store_test_results: {path: results/report.xml}"},
		"azure-pipelines.yml":          {[]string{"trigger", "pool", "steps"}, "testResultsFiles: results/report.xml"},
		".buildkite/pipeline.yml":      {[]string{"steps"}, "artifact_paths: results/**/*"},
	} {
		f, err := config.ParseFile(name, []byte(files[name]))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if keys := f.Root().Keys(); !slices.Equal(keys, want.keys) {
			t.Errorf("%s has the keys %q", name, keys)
		}
		if !strings.Contains(files[name], "sh suite.sh\n") || !strings.Contains(files[name], want.report) {
			t.Errorf("%s does not run the suite, or takes another report", name)
		}
	}
	if groovy := files["Jenkinsfile"]; strings.Count(groovy, "{") != strings.Count(groovy, "}") || !strings.Contains(groovy, "junit 'results/report.xml'") {
		t.Errorf("Jenkinsfile:\n%s", groovy)
	}
}

// suiteScript runs the script of the page in a repository of the user's.
func (u *user) suiteScript(path string) (code int, said string) {
	u.t.Helper()
	cmd := exec.Command("sh", "suite.sh")
	cmd.Dir, cmd.Env = u.path("repo"), u.command().Env
	cmd.Env = append(cmd.Env, "PATH="+path+":"+os.Getenv("PATH"), "SALLYPORT_REPOSITORY=https://example.org/sallyport")
	out, err := cmd.CombinedOutput()
	return exitCode(u.t, err), string(out)
}

func TestCIPage_ScriptGates(t *testing.T) {
	u := newUser(t)
	u.write("repo/suite.sh", ciFiles(t)["suite.sh"])
	u.write("repo/scenarios/sallyport.yaml", "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n")
	good := "scenario: Good\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {state: completed}\n"
	u.write("repo/scenarios/good.yaml", good)
	bin := filepath.Dir(u.command().Path)
	code, said := u.suiteScript(bin)
	if code != 0 || !strings.Contains(said, "1 scenario: 1 passed") || !strings.Contains(u.read("repo/results/report.xml"), `tests="1" failures="0"`) {
		t.Errorf("exit code %d\n%s", code, said)
	}
	u.write("repo/scenarios/bad.yaml", strings.Replace(good, "completed", "failed", 1))
	code, said = u.suiteScript(bin)
	kept, err := filepath.Glob(u.path("repo/results/kept/*/*/state/state.db"))
	if code != 1 || len(kept) != 1 || err != nil || !strings.Contains(u.read("repo/results/report.xml"), `tests="2" failures="1"`) {
		t.Errorf("exit code %d, kept %q, %v\n%s", code, kept, err, said)
	}
	u.write("repo/scenarios/broken.yaml", "scenario: [\n")
	if code, said = u.suiteScript(bin); code != 2 {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// Where the program is not there it is built from its source.
func TestCIPage_ScriptBuildsTheProgram(t *testing.T) {
	u := newUser(t)
	u.write("repo/suite.sh", ciFiles(t)["suite.sh"])
	for name, text := range map[string]string{
		"git": "#!/bin/sh\necho git $*\nmkdir -p $6\n",
		"go":  "#!/bin/sh\necho $CGO_ENABLED go $1 $4\nmkdir -p bin\nprintf '#!/bin/sh\\necho played $*\\n' >bin/sallyport\nchmod +x bin/sallyport\n",
	} {
		if err := os.Chmod(u.write("bin/"+name, text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "suite.sh")
	cmd.Dir = u.path("repo")
	cmd.Env = append(hostEnv(u.dir), "PATH="+u.path("bin")+":/usr/bin:/bin", "SALLYPORT_REPOSITORY=https://example.org/sallyport")
	out, err := cmd.CombinedOutput()
	want := "git clone --quiet --depth 1 https://example.org/sallyport " + u.path("home") + "/sallyport\n0 go build ./cmd/sallyport\n" +
		"played test scenarios --shuffle -o junit --out results/report.xml\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
