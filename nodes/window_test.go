package nodes_test

import (
	"testing"

	"sallyport/nodes"
)

func TestWindow_CheckTakesItsBoundsAndRefusesOnePast(t *testing.T) {
	const least, most = nodes.MinWindow, nodes.MaxWindow
	for _, w := range []nodes.Window{
		{}, {Bytes: least}, {Bytes: most}, {Tokens: least / nodes.BytesPerToken}, {Tokens: most}, {Bytes: least, Tokens: most}, nodes.DefaultWindow,
	} {
		if err := w.Check(); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, w := range []nodes.Window{
		{Bytes: least - 1}, {Bytes: most + 1}, {Bytes: -1},
		{Tokens: least/nodes.BytesPerToken - 1}, {Tokens: most + 1}, {Tokens: -1},
	} {
		if w.Check() == nil {
			t.Errorf("%+v passes", w)
		}
	}
}
