package suite

import "testing"

func TestJUnit_ValuesAreNoPath(t *testing.T) {
	for name, want := range map[string][2]string{
		"b/c/m[v=a/../../b]": {"b/c", "m[v=a/../../b]"}, "b/m": {"b", "m"}, "m": {".", "m"}, "m[v=..]": {".", "m[v=..]"},
	} {
		if folder, base := split(name); folder != want[0] || base != want[1] {
			t.Errorf("%s is %q in %q", name, base, folder)
		}
	}
}
