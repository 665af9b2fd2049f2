package scriptserver

import (
	"encoding/json"
	"slices"
)

// The codes of errors that an honest server gives.
const (
	codeParse    = -32700
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeVersion  = -32022 // unsupported protocol version
)

func (s *server) protocols() []string {
	if len(s.script.Protocols) > 0 {
		return s.script.Protocols
	}
	return []string{stateless, older}
}

// ordinary is the answer of an honest server.
func (s *server) ordinary(m message, sc scene) ([]byte, error) {
	switch m.method {
	case "server/discover":
		return s.discover(m, sc)
	case "initialize":
		return s.initialize(m, sc)
	case "ping":
		return success(m.id, append(s.bare(m), '}')), nil
	case "tools/list":
		return s.list(m, sc)
	case "tools/call":
		return s.call(m, sc)
	}
	return failure(m.id, codeMethod, "method not found", nil), nil
}

// bare is [server.complete] for a result without further members.
func (s *server) bare(m message) []byte {
	out := s.complete(m)
	if out[len(out)-1] == ',' {
		out = out[:len(out)-1]
	}
	return out
}

func (s *server) discover(m message, sc scene) ([]byte, error) {
	if !slices.ContainsFunc(s.protocols(), func(p string) bool { return p >= stateless }) {
		return failure(m.id, codeMethod, "method not found", nil), nil
	}
	versions, err := json.Marshal(s.protocols())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.protocols(), m.version) {
		data := append(append([]byte(`{"supported":`), versions...), `,"requested":`...)
		return failure(m.id, codeVersion, "unsupported protocol version", append(quote(data, []byte(m.version)), '}')), nil
	}
	out := append(append(s.complete(m), `"ttlMs":0,"cacheScope":"public","supportedVersions":`...), versions...)
	out, err = s.capabilities(append(out, ','), sc)
	return success(m.id, append(out, '}')), err
}

func (s *server) initialize(m message, sc scene) ([]byte, error) {
	offered := slices.DeleteFunc(slices.Clone(s.protocols()), func(p string) bool { return p >= stateless })
	if len(offered) == 0 { // none begins like this, but a script may
		offered = s.protocols()
	}
	version := offered[0]
	if slices.Contains(offered, m.version) {
		version = m.version
	}
	out := append(quote([]byte(`{"protocolVersion":`), []byte(version)), `,"serverInfo":`...)
	out, err := s.capabilities(append(append(out, s.info()...), ','), sc)
	return success(m.id, append(out, '}')), err
}

func (s *server) capabilities(out []byte, sc scene) ([]byte, error) {
	capabilities, err := sc.value(s.script.Capabilities)
	if err != nil {
		return nil, err
	}
	if capabilities == nil {
		capabilities = []byte(`{"tools":{}}`)
	}
	out = append(append(out, `"capabilities":`...), capabilities...)
	if s.script.Instructions != nil {
		words, err := sc.render(s.script.Instructions)
		if err != nil {
			return nil, err
		}
		out = quote(append(out, `,"instructions":`...), words)
	}
	return out, nil
}

// call answers a call without a reply of its own.
func (s *server) call(m message, sc scene) ([]byte, error) {
	i := s.called(m.tool)
	if i < 0 {
		return failure(m.id, codeParams, "Unknown tool", nil), nil
	}
	r := Reply{Text: plain("Done.")}
	switch t := s.script.Tools[i]; {
	case t.Result == resultStatus:
		r = Reply{Status: "ok"}
	case t.OutputSchema != nil:
		r.Structured = Value("{}")
	}
	result, err := s.result(m, r, sc)
	return success(m.id, result), err
}
