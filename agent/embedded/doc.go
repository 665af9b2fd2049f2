// Package embedded is the engine for one machine: a SQLite file that holds the
// journals, bodies and inbox of all runs, an OS lock for each run that is served, and
// one writer for each process with group commit.
//
// Any number of processes may open the same state directory at once. Each may read,
// start runs and deliver decisions; a run is served by one at a time. What the
// package never does: decide anything. [agent.Step] does, and [agent.Driver] is the
// loop; this package says only how their words last.
//
// The state directory holds state.db (and SQLite's own state.db-wal and -shm), and
// locks/. A run that rests holds disk only: no lock, no goroutine, no child.
//
// Start reading at [Open], then writer.go for durability and serve.go for the loop.
package embedded
