package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/agent"
	"sallyport/tools"
)

// docsConfig is the file that the builtin docs is started with: trusted configuration,
// and public keys only.
type docsConfig struct {
	Root       string   `json:"root"`
	Scope      string   `json:"scope"`
	Audience   string   `json:"audience"`
	Keys       []string `json:"keys"`
	Ledger     string   `json:"ledger"`
	Approvers  int      `json:"approvers,omitempty"`
	MirrorText bool     `json:"mirror_text,omitempty"`
}

// launch says how to start a server. For a builtin it writes the configuration file and
// makes the ledger's folder, below the state directory.
func (c Config) launch(srv tools.Server, contracts []tools.Contract, run string) (command, error) {
	cmd := command{args: srv.Command, dir: srv.Dir, pass: srv.Env, run: run, program: c.Programs[srv.Prefix]}
	switch srv.Builtin {
	case "":
		return cmd, nil
	case tools.BuiltinDocs:
		file, err := c.docs(srv, contracts)
		if err != nil {
			return command{}, fmt.Errorf("configure the server %s: %w", srv.Prefix, err)
		}
		cmd.args = []string{c.Self, "mcp", tools.BuiltinDocs, "--config", file}
	default:
		cmd.args = []string{c.Self, "mcp", srv.Builtin}
	}
	if c.Self == "" {
		return command{}, errors.New("no executable to start builtin servers from")
	}
	return cmd, nil
}

func (c Config) docs(srv tools.Server, contracts []tools.Contract) (file string, err error) {
	if c.StateDir == "" {
		return "", errors.New("no state directory")
	}
	pin := serverPin(srv)
	name := srv.Prefix + "-" + shortHash(srv.Root)
	cfg := docsConfig{
		Root: srv.Root, Scope: pin.Scope, Audience: pin.Audience, Keys: c.Keys,
		Ledger: filepath.Join(c.StateDir, "ledger", name), MirrorText: srv.MirrorText,
	}
	for _, t := range contracts {
		if t.Prefix() == srv.Prefix && t.GrantField != "" {
			cfg.Approvers = max(cfg.Approvers, t.Approvers())
		}
	}
	if err := os.MkdirAll(cfg.Ledger, 0o700); err != nil {
		return "", err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return "", err
	}
	// The name follows from the content: a file that is there already says the same.
	dir := filepath.Join(c.StateDir, "servers")
	file = filepath.Join(dir, name+"-"+shortHash(string(text))+".json")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return file, writeWhole(file, text)
}

// writeWhole makes the file hold exactly text, or fails; nobody ever reads a part.
func writeWhole(file string, text []byte) error {
	if was, err := os.ReadFile(file); err == nil && string(was) == string(text) {
		return nil
	}
	draft, err := os.CreateTemp(filepath.Dir(file), ".draft-") // mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(text)
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// serverPin is what a run pins of a server before it has been asked. Where
// configuration gives no audience or scope, grants are bound to the prefix.
func serverPin(srv tools.Server) agent.Server {
	pin := agent.Server{Prefix: srv.Prefix, Audience: srv.Audience, Scope: srv.Scope}
	if pin.Audience == "" {
		pin.Audience = srv.Prefix
	}
	if pin.Scope == "" {
		pin.Scope = srv.Prefix
	}
	return pin
}
