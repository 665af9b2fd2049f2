package chat_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"sallyport/nodes/llm/chat"
	"sallyport/tools/strictjson"
)

func read(r io.Reader) ([]string, error) {
	var out []string
	for data, err := range chat.Events(r) {
		if err != nil {
			return out, err
		}
		out = append(out, string(data))
	}
	return out, nil
}

func TestEvents_SplitsAStream(t *testing.T) {
	for name, row := range map[string]struct {
		in   string
		want []string
		err  error
	}{
		"events":                       {"data: a\n\ndata: b\n\n", []string{"a", "b"}, nil},
		"no space, other line ends":    {"data:a\r\n\r\ndata:  b\r\n\r\n", []string{"a", " b"}, nil},
		"comments between":             {": keep-alive\n\n\n: keep-alive\n\ndata: a\n\n", []string{"a"}, nil},
		"other fields":                 {"event: x\nid: 1\nretry: 5\ndata: a\nunknown\n\nevent: y\n\n", []string{"a"}, nil},
		"data of two lines":            {"data: a\ndata: b\n\n", []string{"a\nb"}, nil},
		"empty data":                   {"data\n\n", []string{""}, nil},
		"no empty line at the end":     {"data: a\n\ndata: [DONE]\n", []string{"a", "[DONE]"}, nil},
		"the end in a line":            {"data: a\n\ndata: b", []string{"a"}, chat.ErrCut},
		"nothing":                      {"", nil, nil},
		"an event of exactly a frame":  {"data: " + strings.Repeat("x", strictjson.FrameLimits.Bytes) + "\r\n\n", []string{strings.Repeat("x", strictjson.FrameLimits.Bytes)}, nil},
		"an event past a frame":        {"data: " + strings.Repeat("x", strictjson.FrameLimits.Bytes+1) + "\n\n", nil, chat.ErrTooLarge},
		"lines past a frame together":  {strings.Repeat("data: "+strings.Repeat("x", 1<<19)+"\n", 2), nil, chat.ErrTooLarge},
		"a line without an end":        {strings.Repeat("x", 3<<20), nil, chat.ErrTooLarge},
		"an endless stream of nothing": {strings.Repeat(": keep-alive, and on\n\n", chat.MaxStream/22+1), nil, chat.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(strings.NewReader(row.in))
			if !errors.Is(err, row.err) || !slices.Equal(got, row.want) {
				t.Errorf("got %d events, %v", len(got), err)
			}
			if len(row.in) < 1000 {
				if slow, err := read(iotest.OneByteReader(strings.NewReader(row.in))); !errors.Is(err, row.err) || !slices.Equal(slow, row.want) {
					t.Errorf("byte by byte: %q, %v", slow, err)
				}
			}
		})
	}
}

func TestEvents_PassesTheReadersErrorOn(t *testing.T) {
	boom := errors.New("boom")
	got, err := read(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(boom)))
	if !errors.Is(err, boom) || !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, %v", got, err)
	}
}
