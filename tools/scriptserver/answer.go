package scriptserver

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"sallyport/tools/strictjson"
)

// choose finds the reply to a request or notification, and its path; both are empty for an ordinary one.
func (s *server) choose(m message, sc scene) (Reply, string) {
	replies, at := s.script.Methods[m.method], "methods."+m.method
	if replies == nil && m.method == "tools/call" {
		i := s.called(m.tool)
		if i < 0 {
			return Reply{}, ""
		}
		replies, at = s.script.Tools[i].Replies, fmt.Sprintf("tools.%d.replies", i)
	}
	var last Reply
	var chosen string
	for i, r := range replies {
		if !s.fits(r, sc) {
			continue
		}
		last, chosen = r, at+"."+strconv.Itoa(i)
		if s.memory.used[chosen] < max(r.Times, 1) {
			break
		}
	}
	return last, chosen
}

func (s *server) fits(r Reply, sc scene) bool {
	for name, want := range r.Arguments {
		wanted, err := sc.value(want)
		if err != nil {
			return false
		}
		if want[0] == '"' { // a text is compared as a text
			wanted = quote(nil, wanted)
		}
		if !same(sc.arguments[name], wanted) {
			return false
		}
	}
	return s.holds(r.When, sc)
}

// same compares two JSON values.
func same(a, b []byte) bool {
	x, err := strictjson.Canonical(a)
	y, err2 := strictjson.Canonical(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// answer makes the line of an answer when it is due; it is nil if there is none. What depends on what was
// received so far is settled now, what depends on files then.
func (s *server) answer(m message, r Reply, sc scene) func() ([]byte, error) {
	switch {
	case m.junk:
		return ready(failure([]byte("null"), codeParse, "parse error", nil), nil)
	case m.id == nil || r.silent():
		return nil
	case len(r.answers()) == 0:
		return ready(s.ordinary(m, sc))
	}
	return func() ([]byte, error) { return s.written(m, r, sc) }
}

// silent reports whether no answer of the server's own making is given: a crash without one is a crash in
// the middle of a request.
func (r Reply) silent() bool {
	return r.Silent || r.Frames != nil || len(r.answers()) == 0 && (r.Exit != nil || r.CloseStdout)
}

func ready(line []byte, err error) func() ([]byte, error) {
	return func() ([]byte, error) { return line, err }
}

// written is an answer that the script gives.
func (s *server) written(m message, r Reply, sc scene) ([]byte, error) {
	if r.Error != nil {
		text, err := sc.render(r.Error.Message)
		if err != nil {
			return nil, err
		}
		data, err := sc.value(r.Error.Data)
		return failure(m.id, r.Error.Code, string(text), data), err
	}
	if r.Result != nil {
		result, err := sc.value(r.Result)
		return success(m.id, result), err
	}
	result, err := s.result(m, r, sc)
	return success(m.id, result), err
}

// result is that of a tool's call.
func (s *server) result(m message, r Reply, sc scene) ([]byte, error) {
	text, err := sc.render(r.Text)
	if err != nil {
		return nil, err
	}
	structured, err := sc.value(r.Structured)
	if err != nil {
		return nil, err
	}
	if r.Status != "" {
		if structured, text, err = statusShape(r, sc); err != nil {
			return nil, err
		}
	}
	out := s.complete(m)
	if r.Text != nil || r.Status != "" {
		out = append(quote(append(out, `"content":[{"type":"text","text":`...), text), `}]`...)
	} else {
		out = append(out, `"content":[]`...)
	}
	if structured != nil {
		out = append(append(out, `,"structuredContent":`...), structured...)
	}
	if r.IsError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}'), nil
}

// statusShape is a result of status, message and data.
func statusShape(r Reply, sc scene) (structured, text []byte, err error) {
	text = []byte("Done.")
	if r.Message != nil {
		if text, err = sc.render(r.Message); err != nil {
			return nil, nil, err
		}
	}
	data, err := sc.value(r.Data)
	if err != nil {
		return nil, nil, err
	}
	if data == nil {
		data = []byte("{}")
	}
	out := quote([]byte(`{"status":`), []byte(r.Status))
	out = quote(append(out, `,"message":`...), text)
	return append(append(append(out, `,"data":`...), data...), '}'), text, nil
}

// complete begins a result: in the stateless protocol it says that it is whole, and whose it is.
func (s *server) complete(m message) []byte {
	if m.version < stateless || !slices.Contains(s.protocols(), m.version) {
		return []byte{'{'}
	}
	out := append([]byte(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":`), s.info()...)
	return append(out, `},`...)
}

// info is what the server says of itself.
func (s *server) info() []byte {
	name, version := s.script.Name, s.script.Version
	if name == "" {
		name = "scripted"
	}
	if version == "" {
		version = "1"
	}
	out := quote([]byte(`{"name":`), []byte(name))
	return append(quote(append(out, `,"version":`...), []byte(version)), '}')
}

func success(id, result []byte) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(append(out, `,"result":`...), result...)
	return append(out, "}\n"...)
}

func failure(id []byte, code int, text string, data []byte) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = fmt.Appendf(out, `,"error":{"code":%d,"message":`, code)
	out = quote(out, []byte(text))
	if data != nil {
		out = append(append(out, `,"data":`...), data...)
	}
	return append(out, "}}\n"...)
}
