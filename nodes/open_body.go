package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// The Host's own tool, which opens data again that has left the context. It is a tool
// like any other: pinned, checked, counted by its intent, journaled and observed. Only
// no server stands behind it; the run's own journal and bodies answer.
const (
	// OpenBody is the tool's name as the model knows it.
	OpenBody = HostServer + "__" + openBodyRemote
	// HostServer is the prefix of what the Host itself answers. No server can have it.
	HostServer = "host"
	// MaxOpen is how many bytes of a body one call opens at most.
	MaxOpen = 16_000

	openBodyRemote = "open_body"
)

// openBodyDefinition describes the tool as a server would.
var openBodyDefinition = fmt.Sprintf(`{
	"name": %q,
	"description": "Opens data again that a tool returned earlier in this run, by the ref of its observation: at most %d bytes of its JSON text from a byte offset on. It opens nothing else.",
	"inputSchema": {"type": "object", "additionalProperties": false, "required": ["ref"], "properties": {
		"ref": {"type": "string", "description": "the ref under untrusted, whole: sha256:HEX#0-BYTES", "minLength": 1, "maxLength": 100},
		"offset": {"type": "integer", "description": "the byte to begin at; the last piece names the next", "minimum": 0, "default": 0},
		"length": {"type": "integer", "description": "how many bytes at most", "minimum": 1, "maximum": %d, "default": %d}}},
	"outputSchema": {"type": "object", "additionalProperties": false, "required": ["status", "message"], "properties": {
		"status": {"type": "string"}, "message": {"type": "string"}, "data": {"type": "object"}}},
	"annotations": {"readOnlyHint": true, "openWorldHint": false}
}`, openBodyRemote, MaxOpen, MaxOpen, MaxOpen)

// openBodyTool is the definition, checked as every other.
var openBodyTool = sync.OnceValue(func() *tools.Tool {
	d, err := tools.ParseDefinition([]byte(openBodyDefinition))
	if err == nil {
		var t *tools.Tool
		t, err = tools.NewTool(tools.Contract{Name: OpenBody, Owner: HostServer, Risk: agent.RiskRead, Result: tools.ResultStatus}, d)
		if err == nil {
			return t
		}
	}
	panic(fmt.Sprintf("the definition of %s: %v", OpenBody, err)) // it is a constant: every test would see it
})

// Own is what a run pins to offer the model the Host's own tool.
type Own struct {
	Tool       agent.Tool
	Server     agent.Server
	Contract   tools.Contract
	Definition agent.Body // canonical: what Tool.Definition is the digest of
	Model      Tool
}

// OwnTool is the tool [OpenBody].
func OwnTool() Own {
	t := openBodyTool()
	return Own{
		Tool: agent.Tool{
			Name: OpenBody, Server: HostServer, Remote: openBodyRemote, Risk: agent.RiskRead, Definition: t.Definition.Digest,
		},
		Contract:   t.Contract,
		Server:     agent.Server{Prefix: HostServer, Audience: HostServer},
		Definition: agent.NewBody(t.Definition.Canonical),
		Model:      Tool{Name: t.Model.Name, Description: t.Model.Description, Parameters: json.RawMessage(t.Model.Parameters)},
	}
}

// opensBodies reports whether the run offers [OpenBody].
func opensBodies(spec *agent.Spec) bool {
	pin, ok := spec.Tool(OpenBody)
	return ok && own(pin)
}

// own reports whether the Host itself answers a call of the tool.
func own(pin agent.Tool) bool { return pin.Server == HostServer && pin.Name == OpenBody }

// offered are the tools that the model is told of: the bridge's, then the Host's own.
func (n *Nodes) offered(spec *agent.Spec) []Tool {
	offered := n.bridge.Exposed()
	if o := OwnTool(); opensBodies(spec) && pins(spec, o) {
		return append(slices.Clip(offered), o.Model)
	}
	return offered
}

// pins reports whether the run pinned the tool as it is now: another version of this
// program may have begun it.
func pins(spec *agent.Spec, o Own) bool {
	pin, ok := spec.Tool(o.Tool.Name)
	return ok && pin.Definition == o.Tool.Definition
}

// opening is what a call of [OpenBody] asks for.
type opening struct {
	Ref    string `json:"ref"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// The reasons that [OpenBody] adds to those of the bridge.
const (
	reasonUnknownRef = "unknown_ref" // no observation of this run showed it
	reasonPastEnd    = "past_end"    // the offset is not within the data
	reasonErased     = "erased"      // the operator removed the content
)

// prepareOwn is Prepare of the Host's own tool: the rows of SPEC B10 that can refuse it.
func (n *Nodes) prepareOwn(t agent.Task, c Call) (agent.Result, []agent.Body) {
	arguments, no := checkOwn(t.Run, c)
	n.logOwn(t, "decision", arguments, no)
	var bodies []agent.Body
	var ref agent.BodyRef
	if arguments != nil {
		body := agent.NewBody(arguments)
		ref, bodies = body.Ref, []agent.Body{body}
	}
	if no != nil {
		return agent.Returned{Outcome: *no, Arguments: ref}, bodies
	}
	return agent.Checked{Arguments: ref, Definition: openBodyTool().Definition.Digest, Server: HostServer}, bodies
}

// checkOwn gives the canonical arguments, or the refusal.
func checkOwn(run agent.Run, c Call) ([]byte, *agent.Outcome) {
	tool := openBodyTool()
	arguments, err := tool.DecodeArguments(c.Arguments) // rows 1 and 3
	if err != nil {
		return nil, refusedOwn(agent.ClassToolError, argumentReason(err))
	}
	switch {
	case run.Used.Calls >= run.Budget.Calls: // 4
		return arguments, refusedOwn(agent.ClassBudget, "budget")
	case pinned(run).Definition != tool.Definition.Digest: // 6
		return arguments, refusedOwn(agent.ClassPermissionRefused, "definition_changed")
	case tool.CheckArguments(arguments) != nil: // 7
		return arguments, refusedOwn(agent.ClassToolError, "server_schema")
	}
	return arguments, nil
}

// argumentReason names the row that refuses arguments as the bridge does.
func argumentReason(err error) string {
	var bad *tools.ArgumentError
	switch {
	case !errors.As(err, &bad) || bad.Row != 1:
		return "arguments_invalid"
	case bad.Reason == tools.ValueTooLarge:
		return "arguments_too_large"
	}
	return "arguments_not_object"
}

func refusedOwn(class agent.Class, reason string) *agent.Outcome {
	return &agent.Outcome{Status: agent.StatusRejected, Class: class, Reason: reason}
}

// sendOwn is Send of the Host's own tool. It reads and changes nothing, so that it may
// be performed again after a crash.
func (n *Nodes) sendOwn(ctx context.Context, t agent.Task) (agent.Returned, []agent.Body, error) {
	sent, err := arguments(ctx, t)
	if err != nil {
		return agent.Returned{}, nil, err
	}
	n.logOwn(t, "request", sent, nil)
	var asked opening
	if err := strictjson.Decode(sent, &asked); err != nil {
		return agent.Returned{}, nil, fmt.Errorf("decode the arguments of call %s: %w", t.Run.Call.ID, err)
	}
	out, bodies, err := open(ctx, t.Reader, asked)
	if err != nil {
		return agent.Returned{}, nil, fmt.Errorf("open a body for call %s: %w", t.Run.Call.ID, err)
	}
	out.Sent, out.Request = true, ownRequest(t)
	n.logOwn(t, "response", nil, &out)
	return agent.Returned{Outcome: out}, bodies, nil
}

// ownRequest stands where the id of an MCP request would.
func ownRequest(t agent.Task) string { return HostServer + "-" + strconv.FormatInt(t.Effect.Seq, 10) }

// open opens a piece of a body that an observation of this run showed to the model.
func open(ctx context.Context, r agent.Reader, asked opening) (agent.Outcome, []agent.Body, error) {
	ref, source, err := shown(ctx, r, asked.Ref)
	if err != nil || ref.IsZero() {
		return *refusedOwn(agent.ClassPermissionRefused, reasonUnknownRef), nil, err
	}
	data, err := r.Body(ctx, ref)
	switch {
	case errors.Is(err, agent.ErrNoBody) && !errors.Is(err, agent.ErrIntegrity):
		return *refusedOwn(agent.ClassPermissionRefused, reasonErased), nil, nil
	case err != nil:
		return agent.Outcome{}, nil, fmt.Errorf("read body %s: %w", ref, err)
	case asked.Offset >= int64(len(data)):
		return *refusedOwn(agent.ClassToolError, reasonPastEnd), nil, nil
	}
	piece := cutPiece(data, int(asked.Offset), int(asked.Length))
	piece.Ref, piece.Source = ref, source
	raw, err := piece.result()
	if err != nil {
		return agent.Outcome{}, nil, err
	}
	return agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Body: raw.Ref}, []agent.Body{raw}, nil
}

// shown finds the body that an observation showed under this reference, and where it
// came from; a zero reference if none did. What else the run keeps, and what other runs
// keep, no observation shows.
func shown(ctx context.Context, r agent.Reader, ref string) (agent.BodyRef, Source, error) {
	for e, err := range r.Entries(ctx) {
		if err != nil {
			return agent.BodyRef{}, Source{}, err
		}
		if e.Kind != agent.EntryEvent {
			continue
		}
		s, err := spokenBy(e)
		if err != nil {
			return agent.BodyRef{}, Source{}, err
		}
		if s.evidence.IsZero() || s.message.IsZero() || s.evidence.String() != ref {
			continue
		}
		source, err := sourceOf(ctx, r, s.message)
		return s.evidence, source, err
	}
	return agent.BodyRef{}, Source{}, nil
}

// sourceOf is the source that an observation named.
func sourceOf(ctx context.Context, r agent.Reader, message agent.BodyRef) (Source, error) {
	data, err := r.Body(ctx, message)
	if err != nil {
		return Source{}, fmt.Errorf("read body %s: %w", message, err)
	}
	m, err := parseMessage(data, RoleTool)
	if err != nil {
		return Source{}, err
	}
	o, err := ParseObservation(m.Content)
	if err != nil || o.Untrusted == nil {
		return Source{}, err
	}
	return o.Untrusted.Source, nil
}

// piece is the data of a result of [OpenBody]. The model is shown source and reference
// of the whole where those of other results stand, and the rest as data.
type piece struct {
	Ref    agent.BodyRef `json:"ref"` // of the whole
	Source Source        `json:"source"`
	pieceData
}

// pieceData is the piece as the model gets it.
type pieceData struct {
	Offset int    `json:"offset"`        // of the piece's first byte
	Next   int    `json:"next,omitzero"` // where the next piece begins; absent at the end
	Text   string `json:"text"`          // of the canonical JSON
}

// cutPiece cuts at characters: the one that holds the byte at offset is the first, and
// there is at least one. As JSON a piece is never larger than [MaxData].
func cutPiece(data []byte, offset, length int) piece {
	for offset > 0 && !utf8.RuneStart(data[offset]) {
		offset--
	}
	for ; ; length = length * 3 / 4 {
		end := min(offset+max(length, 1), len(data))
		for end > offset && end < len(data) && !utf8.RuneStart(data[end]) {
			end--
		}
		if end == offset {
			_, size := utf8.DecodeRune(data[offset:])
			end += size
		}
		p := pieceData{Offset: offset, Text: string(data[offset:end])}
		if end < len(data) {
			p.Next = end
		}
		if text, err := strictjson.Encode(p); err != nil || len(text) <= MaxData {
			return piece{pieceData: p}
		}
	}
}

// pieceResult is a result of [OpenBody] in the form of any tool's.
type pieceResult struct {
	Structured struct {
		Status  agent.Status `json:"status"`
		Message string       `json:"message"`
		Data    piece        `json:"data"`
	} `json:"structuredContent"`
}

func (p piece) result() (agent.Body, error) {
	var r pieceResult
	r.Structured.Status, r.Structured.Data = agent.StatusOK, p
	raw, err := strictjson.Encode(r)
	if err != nil {
		return agent.Body{}, fmt.Errorf("encode a piece of body %s: %w", p.Ref, err)
	}
	return agent.NewBody(raw), nil
}

// opened is the evidence in a stored result of [OpenBody]: a piece of what another tool
// returned, which stays the source of it.
func opened(raw []byte) (evidence, error) {
	var r pieceResult
	if strictjson.Decode(raw, &r) != nil {
		return evidence{}, errNotAResult
	}
	p := r.Structured.Data
	data, err := strictjson.Encode(p.pieceData)
	if err != nil || len(data) > MaxData || p.Ref.IsZero() || r.Structured.Status != agent.StatusOK {
		return evidence{}, errNotAResult
	}
	return evidence{piece: &p, data: data}, nil
}

// untrusted is the piece as it is quoted.
func (p *piece) untrusted(data []byte) *Untrusted {
	return &Untrusted{Source: p.Source, Ref: p.Ref.String(), Bytes: p.Ref.Bytes, Data: data}
}
