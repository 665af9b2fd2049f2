package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios/config"
	"sallyport/tools/grant"
)

// A key NAME is two files of a keys directory: the private one, readable by its owner
// only, and beside it the public line, which configuration and servers get.
const (
	privateSuffix = ".json"
	publicSuffix  = ".pub"
)

// keysBelow is the folder of keys in the user's configuration and in a state directory.
const keysBelow = config.KeysDir

// keyRow is a key in a list.
type keyRow struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Public    string `json:"public"` // the line that configuration takes
	Encrypted bool   `json:"encrypted"`
	Path      string `json:"path"` // of the private key
	Problem   string `json:"problem,omitempty"`
}

func (k keyRow) cells() []string {
	locked := "no"
	if k.Encrypted {
		locked = "yes"
	}
	return []string{k.Name, k.ID, locked, k.Path, k.Problem}
}

func (a *app) keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Make and list the keys that approvals are signed with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	var name string
	var open bool
	create := &cobra.Command{
		Use: "new", Short: "Make a key, and let it approve in your own configuration", Args: cobra.NoArgs,
		Long: `Make an Ed25519 key under $XDG_CONFIG_HOME/sallyport/keys and print its public line.
If you have no configuration of your own yet, one is made that lists the key as an
approver; if you have one, the line to add is printed.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.keysNew(c.Context(), name, open) },
	}
	create.Flags().StringVar(&name, "as", "", "`NAME` of the approver (default: your user name)")
	create.Flags().BoolVar(&open, "no-passphrase", false, "keep the key unencrypted")
	keys.AddCommand(create, &cobra.Command{
		Use: "list", Short: "List the keys that you have", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.keysList() },
	})
	return keys
}

func (a *app) keysNew(ctx context.Context, name string, open bool) error {
	home, err := configHome()
	if err != nil {
		return err
	}
	if name == "" {
		name = userName()
	}
	key, err := grant.NewPrivateKey(name, nil)
	if err != nil {
		return usage("choose a name of 1 to 64 letters, digits and ._@- with --as NAME", "make a key for %q: %w", name, err)
	}
	dir := filepath.Join(home, keysBelow)
	path := filepath.Join(dir, name+privateSuffix)
	if _, err := os.Lstat(path); err == nil {
		return usage("choose another name with --as NAME; a key is never replaced", "make key %q: %q is there already", name, path)
	}
	passphrase, err := a.newPassphrase(ctx, name, open)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the keys directory: %w", err)
	}
	public, err := saveKey(dir, key, passphrase)
	if err != nil {
		return err
	}
	a.say("Key %s (%s) is in %s", name, key.Public().ID(), terminal.Line(path))
	if err := a.enrol(home, key.Public()); err != nil {
		return err
	}
	return a.print("%s\n", public)
}

// enrol lets the key approve: it makes the user's own configuration with all keys that
// there are, or says what to add to the one that is there. The file is the user's, and
// is never rewritten.
func (a *app) enrol(home string, key grant.PublicKey) error {
	path := filepath.Join(home, config.UserFile)
	u, err := config.LoadUser(home)
	if err != nil {
		a.warn("Your own configuration cannot be read; add the key to it yourself", err.Error())
		return nil
	}
	if u.Path == "" {
		return a.makeUserFile(path, home)
	}
	if !slices.ContainsFunc(u.Keys(), func(k agent.Approver) bool { return k.Key == key.String() }) {
		a.say("Your own configuration lists the approvers. To let this key approve, add to %s:\n  approvers:\n    - %s", terminal.Line(path), key.Name)
	}
	return nil
}

func (a *app) makeUserFile(path, home string) error {
	rows, err := keysIn(filepath.Join(home, keysBelow))
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Your own sallyport configuration: who may approve, and the most that a run may use.\n" +
		"# A project's sallyport.yaml can lower what stands here, and never raise it.\napprovers:\n")
	for _, r := range rows {
		if r.Problem == "" {
			fmt.Fprintf(&b, "  - %s\n", strconv.Quote(r.Name))
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make your own configuration: %w", err)
	}
	_, err = f.WriteString(b.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("make your own configuration: %w", err)
	}
	a.say("It may approve: %s was made and lists it", terminal.Line(path))
	return nil
}

// saveKey writes the two files of a key into an existing directory.
func saveKey(dir string, key grant.PrivateKey, passphrase []byte) (public string, err error) {
	public = key.Public().String()
	path := filepath.Join(dir, key.Public().Name)
	if err := key.Save(path+privateSuffix, passphrase); err != nil {
		return "", err
	}
	if err := os.WriteFile(path+publicSuffix, []byte(public+"\n"), 0o644); err != nil { //nolint:gosec // public
		return "", fmt.Errorf("save public key: %w", err)
	}
	return public, nil
}

// newPassphrase asks twice. Without a terminal a key is only made with --no-passphrase.
func (a *app) newPassphrase(ctx context.Context, name string, open bool) ([]byte, error) {
	if open {
		return nil, nil
	}
	if !a.asks() {
		return nil, usage("run it on a terminal, or say --no-passphrase to keep the key unencrypted",
			"make key %q: there is nobody to ask for a passphrase", name)
	}
	first, err := a.console().Secret(ctx, "Passphrase for the new key: ")
	if err != nil {
		return nil, secretErr(ctx, err)
	}
	if len(first) == 0 {
		return nil, usage("type one, or say --no-passphrase", "make key %q: an empty passphrase", name)
	}
	again, err := a.console().Secret(ctx, "Once more: ")
	if err != nil {
		return nil, secretErr(ctx, err)
	}
	if !bytes.Equal(first, again) {
		return nil, usage("try again", "make key %q: the two passphrases differ", name)
	}
	return first, nil
}

func secretErr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fail(exitNoKey, "", "%w", err)
}

// userName is a name for the user's key, from the environment: a label, which nothing
// rests on. Who begins a run is [app.operator].
func userName() string {
	for _, v := range []string{"USER", "LOGNAME"} {
		if n := os.Getenv(v); n != "" {
			return n
		}
	}
	return "operator"
}

func (a *app) keysList() error {
	home, err := configHome()
	if err != nil {
		return err
	}
	rows, err := keysIn(filepath.Join(home, keysBelow))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		a.say("No keys yet. Make one with: sallyport keys new")
	}
	return list(a, []string{"NAME", "ID", "ENCRYPTED", "PATH", ""}, rows)
}

// keysIn lists the keys of a directory, which may be absent, by name. A file that is
// no key stays in the list with its problem.
func keysIn(dir string) ([]keyRow, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the keys: %w", err)
	}
	var rows []keyRow
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), privateSuffix)
		if !ok {
			continue
		}
		rows = append(rows, readKeyRow(dir, name))
	}
	slices.SortFunc(rows, func(a, b keyRow) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

func readKeyRow(dir, name string) keyRow {
	row := keyRow{Name: name, Path: filepath.Join(dir, name+privateSuffix)}
	var err error
	if row.Encrypted, err = grant.Encrypted(row.Path); err != nil {
		row.Problem = keyProblem(err)
	}
	line, err := os.ReadFile(filepath.Join(dir, name+publicSuffix))
	if err != nil {
		row.Problem = cmp.Or(row.Problem, "its public key is missing: "+rootCause(err))
		return row
	}
	key, err := grant.ParsePublicKey(strings.TrimSuffix(string(line), "\n"))
	switch {
	case err != nil:
		row.Problem = cmp.Or(row.Problem, "its public key is damaged")
	case key.Name != name:
		row.Problem = cmp.Or(row.Problem, "its public key has another name")
	default:
		row.ID, row.Public = key.ID(), key.String()
	}
	return row
}

// keyProblem is what is wrong with a private key's file, without its path.
func keyProblem(err error) string {
	if _, why, found := strings.Cut(err.Error(), grant.ErrKeyFile.Error()+": "); found {
		return "key file refused: " + why
	}
	return rootCause(err)
}

// rootCause is the innermost text of an error: the row names the file already.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
