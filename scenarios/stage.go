package scenarios

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/nodes"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/bridge"
	"sallyport/tools/grant"
)

// Stage is a scenario that is set up: a folder with a workspace and a state directory,
// a key that approves in this run only, and the engine. Close it; then Remove it, or
// leave it to whoever goes on with the run.
type Stage struct {
	Scenario *Scenario
	Run      string             // the id of the run
	Dir      string             // holds all that follows, unless the state directory is elsewhere
	Desk     string             // the workspace: sources/ and reports/
	State    string             // the state directory
	Keys     []grant.PrivateKey // as many as a call of the scenario can need
	Host     *Host

	scripted bool
	clock    clock
	passed   func(point string) // set before the engine is used
	closeLog func() error
}

// StageOptions say where a stage is set up.
type StageOptions struct {
	// Self is the executable that builtin servers are started from.
	Self string
	// Dir is the folder to make; empty is a temporary one. It must not exist, or be
	// empty.
	Dir string
	// State is the state directory; empty is one within Dir.
	State string
	// Run is the id of the run; empty makes one of Name.
	Run string
	// Name begins the run id and the name of a temporary folder.
	Name string
	// Scripted says that no person decides: the key is pinned as scripted.
	Scripted bool
	// Actor names who begins the run; empty is the scenario itself.
	Actor string
	// Log takes the JSON log; nil is a file in the state directory.
	Log io.Writer
	// Show writes a pending candidate as a person would see it, for scenarios that expect
	// something of that.
	Show func(context.Context, *Host, agent.Run, io.Writer) error
	// Endpoint and Record are those of the [Host].
	Endpoint func(config.Endpoint) (nodes.Model, error)
	Record   func(agent.Run, nodes.Model) nodes.Model
}

// The folders of a stage.
const (
	deskFolder  = "desk"
	stateFolder = "state"
	keysFolder  = "keys"
	logFolder   = "log"
)

// NewRunID makes a run id that begins with name.
func NewRunID(name string) string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 40 {
			break
		}
	}
	slug := strings.TrimSuffix(b.String(), "-")
	if slug == "" {
		slug = "run"
	}
	return slug + "-" + hex.EncodeToString(id)
}

// PlaceError says that the folders to play in cannot be made or used.
type PlaceError struct{ Err error }

// Error is the cause.
func (e *PlaceError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PlaceError) Unwrap() error { return e.Err }

// SetUp makes the folders, the files of the workspace, the key and the engine. On
// error nothing is left behind, and it is a [*PlaceError].
func SetUp(s *Scenario, o StageOptions) (*Stage, error) {
	st, err := setUp(s, o)
	if err != nil {
		return nil, &PlaceError{err}
	}
	return st, nil
}

func setUp(s *Scenario, o StageOptions) (_ *Stage, err error) {
	st := &Stage{Scenario: s, Run: o.Run, scripted: o.Scripted, closeLog: func() error { return nil }}
	if st.Run == "" {
		st.Run = NewRunID(o.Name)
	}
	made := false
	defer func() {
		if err != nil {
			err = errors.Join(err, st.Close())
			if made {
				err = errors.Join(err, st.Remove())
			}
		}
	}()
	if made, err = st.makeDir(o); err != nil {
		return nil, err
	}
	st.clock.jump(-s.ahead())
	if err := st.makeDesk(); err != nil {
		return nil, err
	}
	if err := st.makeScripts(); err != nil {
		return nil, err
	}
	if err := st.makeKeys(); err != nil {
		return nil, err
	}
	if err := st.open(o); err != nil {
		return nil, err
	}
	return st, st.openLog(o.Log)
}

// open opens the engine.
func (st *Stage) open(o StageOptions) error {
	by := cmp.Or(o.Actor, st.Scenario.BegunBy, actor)
	engine, err := embedded.Open(st.State, embedded.Config{Actor: by, Now: st.clock.now, Crash: st.pass})
	if err != nil {
		return err
	}
	st.Host = &Host{Engine: engine, StateDir: st.State, Self: o.Self, Actor: by, Endpoint: o.Endpoint, Record: o.Record, Now: st.clock.now}
	return nil
}

// pass is told the points of the engine as they are passed.
func (st *Stage) pass(point string) {
	if st.passed != nil {
		st.passed(point)
	}
}

// actor names whoever begins a scenario's run. No key can have a name with a space, so
// that none is kept from signing for having begun the run.
const actor = "a scenario"

// makeDir makes the folder of the stage, and says whether it is ours to remove.
func (st *Stage) makeDir(o StageOptions) (bool, error) {
	var err error
	if o.Dir == "" {
		if st.Dir, err = os.MkdirTemp("", "sallyport-"+o.Name+"-"); err != nil {
			return false, fmt.Errorf("make a temporary folder: %w", err)
		}
		st.State = o.State
		return true, st.places()
	}
	if st.Dir, err = filepath.Abs(o.Dir); err != nil {
		return false, fmt.Errorf("find the folder %q: %w", o.Dir, err)
	}
	left, err := os.ReadDir(st.Dir)
	switch {
	case err == nil && len(left) > 0:
		return false, fmt.Errorf("set up in %q: %w", st.Dir, ErrNotEmpty)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("set up in %q: %w", st.Dir, err)
	}
	if err := os.MkdirAll(st.Dir, 0o700); err != nil {
		return false, fmt.Errorf("set up in %q: %w", st.Dir, err)
	}
	st.State = o.State
	return true, st.places()
}

// ErrNotEmpty: the folder to set up in holds something.
var ErrNotEmpty = errors.New("the folder is not empty")

func (st *Stage) places() error {
	st.Desk = filepath.Join(st.Dir, deskFolder)
	if st.State == "" {
		st.State = filepath.Join(st.Dir, stateFolder)
	}
	var err error
	st.State, err = filepath.Abs(st.State)
	if err == nil {
		err = os.MkdirAll(filepath.Join(st.State, keysFolder), 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	return nil
}

// makeKeys makes the keys of this run: the scenario's approvers', or one, or as many as
// a contract asks for. They go into the state directory, so that another process can go
// on with the run.
func (st *Stage) makeKeys() error {
	for _, name := range st.keyNames() {
		key, err := grant.NewPrivateKey(name, nil)
		if err != nil {
			return fmt.Errorf("make a key for the run: %w", err)
		}
		path := filepath.Join(st.State, keysFolder, name)
		if err := key.Save(path+".json", nil); err != nil {
			return fmt.Errorf("make a key for the run: %w", err)
		}
		line := key.Public().String() + "\n"
		if err := os.WriteFile(path+".pub", []byte(line), 0o600); err != nil {
			return fmt.Errorf("make a key for the run: %w", err)
		}
		st.Keys = append(st.Keys, key)
	}
	return nil
}

// keyNames are what the keys of the run are called.
func (st *Stage) keyNames() []string {
	var names []string
	for _, a := range st.Scenario.Approvers {
		names = append(names, a.Name)
	}
	if names != nil {
		return names
	}
	need := 1
	for _, c := range st.Scenario.Config.Tools {
		need = max(need, c.Approvers())
	}
	for i := range need {
		names = append(names, st.keyName(i))
	}
	return names
}

// keyName is the run's id, with a number for all keys but the first.
func (st *Stage) keyName(i int) string {
	if i == 0 {
		return st.Run
	}
	return fmt.Sprintf("%.60s.%d", st.Run, i+1)
}

// LogPath is the JSON log of the run.
func (st *Stage) LogPath() string { return filepath.Join(st.State, logFolder, st.Run+".jsonl") }

func (st *Stage) openLog(given io.Writer) error {
	if given != nil {
		st.Host.Log = zerolog.New(given).With().Timestamp().Logger()
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(st.LogPath()), 0o700); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	f, err := os.OpenFile(st.LogPath(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	st.closeLog = f.Close
	st.Host.Log = zerolog.New(f).With().Timestamp().Logger()
	return nil
}

// Begin discovers the tools and starts the run. It performs nothing.
func (st *Stage) Begin(ctx context.Context) (agent.Run, bridge.Found, error) {
	plan := st.Scenario.stagedPlan(st)
	plan.Run = st.Run
	for i, k := range st.Keys {
		a := agent.Approver{Key: k.Public().String(), Scripted: st.scripted, Roles: rolesOf(st.Scenario.Config.Tools)}
		if len(st.Scenario.Approvers) > 0 {
			a.Roles = st.Scenario.Approvers[i].Roles
		}
		plan.Approvers = append(plan.Approvers, a)
	}
	return st.Host.Begin(ctx, plan)
}

// rolesOf are all roles that contracts ask for: the keys that are made for a stage
// stand for everybody.
func rolesOf(contracts []tools.Contract) []string {
	var roles []string
	for _, c := range contracts {
		if c.Approval != nil && c.Approval.Role != "" && !slices.Contains(roles, c.Approval.Role) {
			roles = append(roles, c.Approval.Role)
		}
	}
	return roles
}

// Close closes the engine and the log.
func (st *Stage) Close() error {
	var err error
	if st.Host != nil {
		err = st.Host.Engine.Close()
	}
	return errors.Join(err, st.closeLog())
}

// Remove removes the folder. A state directory elsewhere keeps the run, without the
// key that was made for it.
func (st *Stage) Remove() error {
	var errs []error
	st.unlock()
	for _, key := range st.Keys {
		path := filepath.Join(st.State, keysFolder, key.Public().Name)
		errs = append(errs, removeIfThere(path+".json"), removeIfThere(path+".pub"))
	}
	return errors.Join(append(errs, os.RemoveAll(st.Dir))...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
