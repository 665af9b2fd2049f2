// Package agent is the core: what a run is and what may happen to it.
//
// A [Run] is a value. [Step] takes it and an [Event] and gives the next run and the
// effects that are now to be performed; it does no I/O, reads no clock and starts no
// goroutine. Which transition is legal is said by one table ([Table]); whether a
// person's decision is genuine is verified by Step itself, so that an engine, a
// replay and an audit agree. [Advance] adds the journal [Entry] that records a step,
// chained to the one before by its hash, and [Replay] walks such a journal again.
//
// Two sealed sets meet here. What the nodes find is a [Result]; what persons and
// operators say is a [Decision]. An event's [Origin] follows from the door that it
// came through ([FromNode], [FromOutside], [FromClock], [Begin]). The invariant that
// all of this serves: an open [Send] of a write carries the required signatures, by
// different keys, over exactly its bytes.
//
// An [Engine] makes runs last. It steps in memory, appends the event and the effects
// that it opens in one durable write, performs the effects through [Nodes], and takes
// what comes back as the next event, in this order and no other. [Driver] is that
// loop for engines that keep a journal of their own: see agent/embedded. The package
// never reads content: entries name bodies by their hash.
package agent
