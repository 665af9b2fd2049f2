// Package suite runs many scenario files as one suite of tests: it finds them ([Find]),
// plays each in a process, a state directory and a workspace of its own, several at once
// ([Suite.Run]), and reports what came of them in the form that is wanted ([Reporter]).
//
// What a scenario is and whether it holds is package scenarios' business; commands,
// flags and the terminal are cmd/sallyport's. A scenario is played by a child of the
// executable ([Play] is what that child does), so that one that hangs, crashes or leaves
// processes behind is ended whole and takes nothing else down.
package suite
