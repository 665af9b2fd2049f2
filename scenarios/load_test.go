package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
)

func TestTurnKeys_AreThoseOfTurnsAndCalls(t *testing.T) {
	want := append(keysOf(llm.Turn{}), keysOf(llm.Call{})...)
	if got := slices.Sorted(slices.Values(turnKeys)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each wrong scenario has the whole text of its error beside it: place, line, mark,
// remedy.
func TestLoadCases_WrongFilesNameThePlaceAndTheRemedy(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		return slices.Contains([]string{config.FileName, "part.yaml"}, filepath.Base(f))
	})
	if len(files) < 20 {
		t.Fatalf("%d wrong files", len(files))
	}
	place := regexp.MustCompile(`^testdata/wrong/[a-z_]+\.yaml:[0-9]+:[0-9]+: `)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := LoadCases(file, LoadOptions{})
			if err == nil {
				t.Fatal("the file is accepted")
			}
			got := filepath.ToSlash(err.Error()) + "\n"
			if !place.MatchString(got) {
				t.Errorf("no place: %s", got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("got\n%s\nwant\n%s, %v", got, want, err)
			}
		})
	}
}
