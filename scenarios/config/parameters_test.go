package config_test

import (
	"strings"
	"testing"

	"sallyport/scenarios/config"
)

func parameters(t *testing.T, text string) map[string]config.Node {
	t.Helper()
	f, err := config.ParseFile("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]config.Node{}
	for _, name := range f.Root().Keys() {
		values[name] = f.Root().Get(name)
	}
	return values
}

func TestWith_ReplacesReferencesInTexts(t *testing.T) {
	f, err := config.ParseFile("a.yaml", []byte(`skipped: {word: "${none}"}
whole: "${number}"
list: ["${list}", x]
text: a ${word} and ${number}, $${word} stays
block: |
  one ${word}
"key ${word}": {deep: ["${word}!"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.With(parameters(t, "number: 12\nword: pear\nlist: [1, two]\n"), "skipped")
	if err != nil {
		t.Fatal(err)
	}
	text, err := got.Root().MarshalJSON()
	const want = `{"block":"one pear\n","key pear":{"deep":["pear!"]},"list":[[1,"two"],"x"],"skipped":{"word":"${none}"},"text":"a pear and 12, ${word} stays","whole":12}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestWith_NamesWhatHasNoValue(t *testing.T) {
	f, err := config.ParseFile("a.yaml", []byte("a: x\nb: is ${wrod}\nc: is ${list}.\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.With(parameters(t, "word: pear\nlist: [1]\n"))
	if err == nil || !strings.Contains(err.Error(), `a.yaml:2:4: there is no parameter "wrod"`) ||
		!strings.Contains(err.Error(), `did you mean "word"?`) || !strings.Contains(err.Error(), `a.yaml:3:4: parameter "list" is a list`) {
		t.Errorf("%v", err)
	}
}

func TestOver_OwnKeysWinAndPlacesStay(t *testing.T) {
	own, err := config.ParseFile("own.yaml", []byte("a: {x: 1}\nb: [1]\n"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := config.ParseFile("shared.yaml", []byte("c: 3\na: {x: 2,\n  y: 4}\nb: [2, 3]\n"))
	if err != nil {
		t.Fatal(err)
	}
	merged := own.Over(shared)
	text, err := merged.Root().MarshalJSON()
	if err != nil || string(text) != `{"a":{"x":1,"y":4},"b":[1],"c":3}` {
		t.Errorf("%s, %v", text, err)
	}
	if d := merged.Problem("", "odd", "a", "y"); d.File != "shared.yaml" || d.Line != 3 {
		t.Errorf("%+v", d)
	}
	var out struct {
		A map[string]int `yaml:"a"`
		B []int          `yaml:"b"`
		C string         `yaml:"c"`
	}
	if err := merged.Decode(&out); err == nil || !strings.HasPrefix(err.Error(), "shared.yaml:1:4: c:") {
		t.Errorf("%v", err)
	}
}

// A mistake in what another file brings is named there, also at a key that nobody knows
// and in a mapping whose keys are names.
func TestOver_MistakesAreNamedWhereTheyStand(t *testing.T) {
	own, err := config.ParseFile("own.yaml", []byte("a: {x: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := config.ParseFile("shared.yaml", []byte("\n\nodd: 1\na:\n  odder: 2\n  n: 0\n  none:\nk: {b: {oddest: 3}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		A struct {
			X    int    `yaml:"x"`
			N    int    `yaml:"n" check:"positive"`
			None string `yaml:"none"`
		} `yaml:"a"`
		K []struct {
			Name string `yaml:"-"`
		} `yaml:"k" keyed:"Name"`
	}
	err = own.Over(shared).Decode(&out)
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{
		"shared.yaml:3:1: unknown key \"odd\"", "shared.yaml:5:3: a: unknown key \"odder\"", "shared.yaml:6:6: a.n: 0 is not above zero",
		"shared.yaml:7:3: a.none: there is no value", "shared.yaml:8:9: k.b: unknown key \"oddest\"",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in\n%v", want, err)
		}
	}
}
