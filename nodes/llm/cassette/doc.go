// Package cassette records what a model answered, and answers it again.
//
// A [Recorder] stands before any model of a run and writes one line for each attempt: what
// the model was given that it had not been given before, what it said, or why it said
// nothing. A [Player] is the model of a run that is played from such a file: it keeps no
// state, takes its position from the transcript, as a script does, and refuses a request
// that differs from the recorded one, with the difference. So a run of a real model can
// be played again, byte for byte, where there is none.
//
// A cassette holds what the model was shown and what it said: the documents that it read
// are in it. It holds no key, no grant, and nothing of the transport. Ids of calls count
// by their order only, since the Host makes those that a provider leaves out of the run's
// own id.
package cassette
