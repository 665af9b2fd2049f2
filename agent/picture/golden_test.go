package picture

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write the pictures that the tests compare with")

// drawn are the pictures that docs/pictures.md shows, and others of the same runs.
func drawn(t testing.TB) map[string]string {
	var none Story
	done, hard, waits, long := report(t).story(), trouble(t).story(), parked(t).story(), endless(t, 10_000).story()
	const docs = "../../docs/img/"
	return map[string]string{
		docs + "machine.svg":             none.Graph(Normal),
		docs + "graph-normal.svg":        hard.Graph(Normal),
		docs + "graph-wide.svg":          hard.Graph(Wide),
		docs + "graph-small.svg":         hard.Graph(Small),
		docs + "timeline-normal.svg":     done.Timeline(Normal),
		docs + "timeline-wide.svg":       hard.Timeline(Wide),
		docs + "timeline-small.svg":      done.Timeline(Small),
		docs + "timeline-long.svg":       long.Timeline(Normal),
		docs + "timeline.html":           done.Page(),
		"testdata/machine-small.svg":     none.Graph(Small),
		"testdata/machine.txt":           none.Text(),
		"testdata/report-graph.svg":      done.Graph(Normal),
		"testdata/report.txt":            done.Text(),
		"testdata/trouble.txt":           hard.Text(),
		"testdata/trouble.mermaid":       hard.Mermaid(),
		"testdata/trouble.dot":           hard.Dot(),
		"testdata/trouble-timeline.svg":  hard.Timeline(Normal),
		"testdata/parked-timeline.svg":   waits.Timeline(Normal),
		"testdata/parked-graph-wide.svg": waits.Graph(Wide),
		"testdata/long-graph.svg":        long.Graph(Normal),
	}
}

// docs/pictures.md shows these; go test ./agent/picture -update draws them anew.
func TestPictures_AreThoseOfTheDocuments(t *testing.T) {
	all := drawn(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if *update {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(all[name]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != all[name] {
			t.Errorf("%s is drawn otherwise; look at it, then -update", name)
		}
	}
}

// The same journal gives the same bytes: nothing depends on the order of a map.
func TestPictures_AreTheSameEveryTime(t *testing.T) {
	d := trouble(t)
	first := d.story()
	for range 20 {
		again := d.story()
		if again.Page() != first.Page() || again.Graph(Wide) != first.Graph(Wide) || again.Text() != first.Text() {
			t.Fatal("two pictures of one journal differ")
		}
	}
}
