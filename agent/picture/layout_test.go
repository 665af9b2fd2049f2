package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

// label is a text of a picture and the room that it needs.
type label struct {
	text                     string
	left, right, top, bottom float64
}

func (l label) meets(o label) bool {
	return l.left < o.right && o.left < l.right && l.top < o.bottom && o.top < l.bottom
}

// labels measures every text, and says how large the picture is.
func labels(t *testing.T, svg string) (all []label, w, h float64) {
	t.Helper()
	byName := map[string]class{}
	for _, k := range classes {
		byName[k.name] = k
	}
	inText := 0
	var l *label
	var k class
	var x, y float64
	var at string
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, w, h
		}
		if err != nil {
			t.Fatal(err)
		}
		switch el := tok.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range el.Attr {
				attr[a.Name.Local] = a.Value
			}
			if el.Name.Local == "svg" {
				w, h = coordinate(t, attr["width"]), coordinate(t, attr["height"])
			}
			if inText > 0 {
				inText++
			}
			if el.Name.Local == "text" {
				inText, k, l = 1, byName[attr["class"]], &label{}
				x, y, at = coordinate(t, attr["x"]), coordinate(t, attr["y"]), attr["text-anchor"]
				if k.size == 0 {
					t.Errorf("a text of class %q, which has no size", attr["class"])
				}
			}
		case xml.CharData:
			if inText == 1 {
				l.text += string(el)
			}
		case xml.EndElement:
			if inText == 0 {
				continue
			}
			if inText--; inText > 0 {
				continue
			}
			wide := float64(cells(l.text)) * k.letter()
			l.left, l.top, l.bottom = x, y-k.size*0.78, y+k.size*0.2
			switch at {
			case "middle":
				l.left -= wide / 2
			case "end":
				l.left -= wide
			}
			l.right = l.left + wide
			all = append(all, *l)
		}
	}
}

func coordinate(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// No label lies on another, and none leaves the picture: at every size, of every run.
func TestPictures_NoLabelIsCutOrCovered(t *testing.T) {
	for name, s := range stories(t) {
		for what, text := range everything(s) {
			if !strings.HasPrefix(what, "svg") {
				continue
			}
			all, w, h := labels(t, text)
			if len(all) < 3 {
				t.Errorf("%s of %s has %d labels", what, name, len(all))
			}
			for i, l := range all {
				if l.left < 0 || l.right > w || l.top < 0 || l.bottom > h {
					t.Errorf("%s of %s: %q leaves the picture: %.0f to %.0f of %.0f", what, name, l.text, l.left, l.right, w)
				}
				for _, o := range all[:i] {
					if l.meets(o) {
						t.Errorf("%s of %s: %q lies on %q", what, name, l.text, o.text)
					}
				}
			}
		}
	}
}

// A label with the longest count that is written keeps clear of all others.
func TestMachine_HasRoomForTheLongestCounts(t *testing.T) {
	s := trouble(t).story()
	for _, rows := range s.taken {
		for row := range rows {
			rows[row] = 999
		}
	}
	for _, size := range Sizes {
		all, w, _ := labels(t, s.Graph(size))
		for i, l := range all {
			if l.right > w {
				t.Errorf("size %d: %q leaves the picture", size, l.text)
			}
			for _, o := range all[:i] {
				if l.meets(o) {
					t.Errorf("size %d: %q lies on %q", size, l.text, o.text)
				}
			}
		}
	}
}

// Every edge of the table is drawn by hand, so that a new one is not forgotten.
func TestMachine_EveryEdgeOfTheTableHasItsWay(t *testing.T) {
	drawn := map[edge]bool{}
	for _, w := range ways {
		drawn[w.edge] = true
	}
	var none Story
	none.edges(func(e edge, _ string) {
		if e.from != e.to && e.to != "cancelled" && !drawn[e] {
			t.Errorf("no way is drawn from %q to %s", e.from, e.to)
		}
		delete(drawn, e)
	})
	for e := range drawn {
		t.Errorf("a way is drawn from %q to %s, which the table does not have", e.from, e.to)
	}
}
