package scenarios

import "testing"

// CHECKS 92: a client that wants a text refuses empty content, and a first block that
// is none.
func TestBeginsWithText(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"content":[{"type":"text","text":"12"}]}`: true,
		`{"content":[{"type":"text","text":""}]}`:   true,
		`{"content":[]}`: false,
		`{}`:             false,
		`{"content":[{"type":"image","data":"AA=="},{"type":"text","text":"12"}]}`:    false,
		`{"content":[{"type":"text"}]}`:                                               false,
		`{"content":[{"type":"resource_link","uri":"x","name":"n"}],"isError":false}`: false,
		`nonsense`: false,
	} {
		if got := beginsWithText([]byte(raw)); got != want {
			t.Errorf("%s: %t, want %t", raw, got, want)
		}
	}
}
