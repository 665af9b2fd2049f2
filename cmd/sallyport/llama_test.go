//go:build llama

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The engine is llama.cpp's own server, which `make llama` installs. Its models are made
// here: with a script for weights, so that they say what a test wants said, or of random
// weights. docs/models.md says what came of it.

const engineFolder = "../../.ci/llama"

// engineEnd is how long the engine has to end.
const engineEnd = 10 * time.Second

// engine starts the server with a model and returns its base URL.
func engine(t *testing.T, model string, template ...string) string {
	t.Helper()
	packages, err := filepath.Abs("../../bin/llama")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "xllamacpp")); err != nil {
		t.Fatalf("the engine is not installed: %v; make llama installs it", err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "engine.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", append([]string{filepath.Join(engineFolder, "serve.py"), model}, template...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill := time.AfterFunc(engineEnd, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = stdin.Close()
		_ = cmd.Wait()
		_ = log.Close()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("the engine did not start: %v\n%s", err, said)
	}
	return strings.TrimSpace(address) + "/v1"
}

// chatTemplate is how a conversation becomes the prompt of a model. With numbered turns
// the last token of the prompt says how many tools have answered so far.
func chatTemplate(t *testing.T, numbered bool) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(engineFolder, "chat.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	if !numbered {
		return string(text)
	}
	const last = `{{- '<|im_start|>assistant\n' }}` + "\n{%- endif %}\n"
	head, found := strings.CutSuffix(string(text), last)
	if !found {
		t.Fatalf("the template does not end in %q", last)
	}
	return head + `{{- '<|im_start|>assistant\n<|turn' + (messages | selectattr('role', 'equalto', 'tool') | list | length | string) + '|>' }}` + "\n{%- endif %}\n"
}

// scriptedEngine serves a model that says these turns.
func scriptedEngine(t *testing.T, turns ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scripted.gguf")
	writeScripted(t, path, chatTemplate(t, true), turns)
	return engine(t, path)
}

// toolCall is a call as such a model writes it.
func toolCall(tool, args string) string {
	return "<tool_call>\n{\"name\": \"" + tool + "\", \"arguments\": " + args + "}\n</tool_call>"
}

// engineUser is a user with a desk, whose task asks an engine.
func engineUser(t *testing.T, base, options string) *user {
	t.Helper()
	u := newUser(t)
	deskFor(u, "")
	u.write("task.yaml", "task: Save what the notes say.\nbudgets: {model_turns: 4}\nmodel:\n"+
		"  openai: {model: made-here, base_url: "+base+", profile: llamacpp, timeout: 60s"+options+"}\n")
	return u
}

// heard is what became of a run, in a few words for each turn and call.
func (u *user) heard(run string) []string {
	u.t.Helper()
	var words []string
	for line := range strings.Lines(u.must(exitOK, "journal", run, "-o", "jsonl").stdout) {
		var e struct {
			Event string
			State string
			Data  struct {
				Calls          []struct{ Tool string }
				Reason, Status string
				Sent           bool
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			u.t.Fatal(err)
		}
		switch e.Event {
		case "turned":
			for _, c := range e.Data.Calls {
				words = append(words, "calls "+c.Tool)
			}
			if len(e.Data.Calls) == 0 {
				words = append(words, "answers")
			}
		case "turn_refused", "unreached":
			words = append(words, e.Event+" "+e.Data.Reason)
		case "returned":
			if e.Data.Sent {
				e.Data.Status += ", sent"
			}
			words = append(words, strings.TrimSpace(e.Data.Status+" "+e.Data.Reason))
		}
	}
	return words
}

// reports are the files that were saved.
func (u *user) reports() []string {
	u.t.Helper()
	entries, err := os.ReadDir(u.path("desk/reports"))
	if err != nil {
		u.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".keep" {
			names = append(names, e.Name())
		}
	}
	return names
}

// A real engine parses a model's words into calls, the adapter takes them, and the run
// goes its way: a document is read, a report waits for a person and is saved as signed.
func TestLlama_ReadsAsksAndSaves(t *testing.T) {
	const content = "The lamp was changed on 9 March."
	base := scriptedEngine(t, toolCall("docs__read_document", `{"filename": "notes.md"}`),
		toolCall("docs__save_report", `{"content": "`+content+`", "filename": "report.md"}`), "I saved what the notes say.")
	for _, streamed := range []bool{false, true} {
		u := engineUser(t, base, ", temperature: 0")
		args := []string{"run", "task.yaml", "--id", "r"}
		if streamed {
			args = append(args, "--stream")
		}
		u.must(exitParked, args...)
		if saved := u.reports(); len(saved) > 0 {
			t.Fatalf("saved without a signature: %q", saved)
		}
		digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
		ended := u.must(exitOK, "approve", "r", "--sha256", digest)
		if ended.stdout != "I saved what the notes say.\n" || u.read("desk/reports/report.md") != content {
			t.Errorf("it said %q\n%s", ended.stdout, ended.messages)
		}
		want := []string{"calls docs__read_document", "ok, sent", "calls docs__save_report", "waiting_approval approval", "ok, sent", "answers"}
		if got := u.heard("r"); !slices.Equal(got, want) {
			t.Errorf("streamed %t: %q, want %q", streamed, got, want)
		}
		u.must(exitOK, "audit", "r")
	}
}

// What a model gets wrong comes through a real engine too. The engine's grammar makes it
// well-formed where it can, whatever the model meant. None of it writes, and each run ends
// in a state that has a name.
func TestLlama_WhatIsWrongHasNoEffect(t *testing.T) {
	cutOff := slices.Repeat([]string{"turn_refused cut_off"}, 4) // the budget's turns
	for _, row := range []struct {
		name, says string
		tokens     int // at most, for each turn
		code       exit
		heard      []string
	}{
		// The grammar lets it name only tools that are offered: it never comes to an end.
		{"another tool", toolCall("docs__delete_all", `{}`), 60, exitFailed, cutOff},
		{"outside", toolCall("docs__read_document", `{"filename": "../../secret.md"}`), 60, exitOK, []string{"calls docs__read_document", "rejected server_schema", "answers"}},
		{"no JSON", "<tool_call>\n{\"name\": \"docs__save_report\", \"arguments\": {oops}}\n</tool_call>", 60, exitFailed, cutOff},
		{"cut off", toolCall("docs__save_report", `{"content": "never", "filename": "report.md"}`), 20, exitFailed, cutOff},
		{"a call as prose", `I call docs__save_report({"content": "never", "filename": "report.md"}) now.`, 60, exitOK, []string{"answers"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			u := engineUser(t, scriptedEngine(t, row.says, "I give up."), fmt.Sprintf(", temperature: 0, max_tokens: %d", row.tokens))
			ended := u.run("run", "task.yaml", "--id", "r")
			if heard := u.heard("r"); ended.code != int(row.code) || !slices.Equal(heard, row.heard) {
				t.Errorf("exit code %d, heard %q\n%s", ended.code, heard, ended.messages)
			}
			if saved := u.reports(); len(saved) > 0 {
				t.Errorf("saved: %q", saved)
			}
			u.must(exitOK, "audit", "r")
		})
	}
}

// Random weights say random bytes, and, with pieces of calls in their vocabulary, often
// something that is almost a call. Whatever the engine makes of it, nothing is written
// without a signature, and each run ends, or waits for a person.
func TestLlama_RandomWeights(t *testing.T) {
	for name, likely := range map[string][]string{
		"bytes": nil,
		"pieces of calls": {
			"<tool_call>\n{\"name\": \"", "docs__save_report", "docs__read_document", "\", \"arguments\": {\"",
			"content", "filename", "\": \"", "\", \"", "notes.md", "\"}}\n</tool_call>",
		},
	} {
		model := filepath.Join(t.TempDir(), "random.gguf")
		writeGarbage(t, model, chatTemplate(t, false), 1, likely)
		base := engine(t, model)
		for seed := range 4 {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				u := engineUser(t, base, fmt.Sprintf(", max_tokens: 300, seed: %d", seed))
				ended := u.run("run", "task.yaml", "--id", "r")
				heard := u.heard("r")
				if named := []int{int(exitOK), int(exitFailed), int(exitParked), int(exitUnreachable)}; !slices.Contains(named, ended.code) {
					t.Errorf("exit code %d\n%s", ended.code, ended.messages)
				}
				if saved := u.reports(); len(saved) > 0 {
					t.Errorf("saved: %q", saved)
				}
				u.must(exitOK, "audit", "r")
				t.Logf("exit code %d, heard %q", ended.code, heard)
			})
		}
	}
}

// The doctor finds a real engine healthy: its list of models, and a sum in two turns
// through the calculator server.
func TestLlama_Doctor(t *testing.T) {
	base := scriptedEngine(t, toolCall("calc__add", `{"a": 7, "b": 5}`), "12")
	u := engineUser(t, base, "")
	u.write("sallyport.yaml", u.read("sallyport.yaml")+"model: {openai: {model: made-here, profile: llamacpp, temperature: 0, base_url: "+base+"}}\n")
	found := u.must(exitOK, "doctor").stdout
	for _, want := range []string{"PASS  model's name ", "PASS  tool calling "} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in\n%s", want, found)
		}
	}
}
