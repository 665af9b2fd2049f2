package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// Setup is what a run is served with, besides what its Spec pins: the servers, the
// contracts and the model, as they were when the run began. It is stored as a body
// whose reference is the Spec's Config. It holds no secret: servers get variables by
// name, and keys stay in their files.
type Setup struct {
	File      string           `json:"file"` // the task or scenario file, for people
	Servers   []tools.Server   `json:"servers"`
	Contracts []tools.Contract `json:"contracts"`
	System    string           `json:"system,omitempty"` // the operator's text for the model
	Script    llm.Script       `json:"script"`
	// Obedient and Random stand for models that only scenarios are played by, in place
	// of the script.
	Obedient bool   `json:"obedient,omitempty"`
	Random   *int64 `json:"random,omitempty"`
	// Endpoint is where the model is asked, in place of the script.
	Endpoint *config.Endpoint `json:"endpoint,omitempty"`
	// Replay is a cassette, in place of the script.
	Replay *Replay `json:"replay,omitempty"`
	// Window bounds what the model is given of the run; zero is the default.
	Window nodes.Window `json:"window,omitzero"`
	// OpenBody offers the model the Host's own tool, which opens data again that left
	// the window.
	OpenBody bool `json:"open_body,omitempty"`
	// Definitions are the bodies of the tool definitions that the run pins.
	Definitions []agent.BodyRef `json:"definitions"`
}

// body is the setup as it is stored.
func (s Setup) body() (agent.Body, error) {
	data, err := json.Marshal(s)
	if err == nil {
		data, err = strictjson.Canonical(data)
	}
	if err != nil {
		return agent.Body{}, fmt.Errorf("encode the setup of %q: %w", s.File, err)
	}
	return agent.NewBody(data), nil
}

// ReadSetup reads what a run was begun with.
func ReadSetup(ctx context.Context, e agent.Engine, run agent.Run) (Setup, error) {
	var s Setup
	ref, err := parseRef(run.Spec.Config)
	if err != nil {
		return s, fmt.Errorf("read the setup of run %s: %w", run.ID, err)
	}
	data, err := e.Body(ctx, run.ID, ref)
	if err != nil {
		return s, fmt.Errorf("read the setup of run %s: %w", run.ID, err)
	}
	if agent.NewBody(data).Ref != ref {
		return s, fmt.Errorf("read the setup of run %s: %w: it is not the one that the run pins", run.ID, agent.ErrIntegrity)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("read the setup of run %s: %w: %w", run.ID, agent.ErrNewer, err)
	}
	return s, nil
}

// parseRef reads the form of [agent.BodyRef.String].
func parseRef(text string) (agent.BodyRef, error) {
	var ref agent.BodyRef
	digest, size, found := strings.Cut(strings.TrimPrefix(text, "sha256:"), "#0-")
	n, err := strconv.ParseInt(size, 10, 64)
	ref.SHA256, ref.Bytes = digest, n
	if !found || err != nil || ref.String() != text {
		return agent.BodyRef{}, fmt.Errorf("a reference of another form: %w", agent.ErrNewer)
	}
	return ref, nil
}

// definition is the reference of a pinned definition.
func (s Setup) definition(digest string) agent.BodyRef {
	for _, ref := range s.Definitions {
		if ref.SHA256 == digest {
			return ref
		}
	}
	return agent.BodyRef{}
}

// Contract returns the contract of an exposed or host-only tool, or of the Host's own.
func (s Setup) Contract(name string) (tools.Contract, bool) {
	if own := nodes.OwnTool(); s.OpenBody && name == own.Tool.Name {
		return own.Contract, true
	}
	for _, c := range s.Contracts {
		if c.Name == name {
			return c, true
		}
	}
	return tools.Contract{}, false
}
