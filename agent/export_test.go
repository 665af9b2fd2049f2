package agent

// Forge gives an event an origin that no door would give it.
func Forge(ev Event, o Origin) Event {
	ev.origin = o
	return ev
}

// Unlist takes a row out of the table of who may cause what, until undo is called:
// a planted mistake for the tests of the tests.
func Allow(row Row, from State, by Origin) (undo func()) {
	at := leaving{row, from}
	was := origins[at]
	origins[at] = append(append([]Origin{}, was...), by)
	return func() { origins[at] = was }
}
