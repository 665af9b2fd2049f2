package agent

// Forge gives an event an origin that no door would give it.
func Forge(ev Event, o Origin) Event {
	ev.origin = o
	return ev
}
