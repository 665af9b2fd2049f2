package agent

import "time"

// Forge gives an event an origin that no door would give it.
func Forge(ev Event, o Origin) Event {
	ev.origin = o
	return ev
}

// Said is the event that an entry records.
func Said(e Entry) Event {
	ev, err := e.said()
	if err != nil {
		panic(err) // an entry of a test
	}
	return ev
}

// FromParent is the door of what a fork carries.
func FromParent(e Effect, r Result, seq int64, at time.Time) Event { return fromParent(e, r, seq, at) }
