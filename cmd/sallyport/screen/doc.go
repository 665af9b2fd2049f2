// Package screen is the full-screen debugger: a run's machine with the current state lit,
// its steps, and what each of them was about, in a terminal of any size.
//
// It moves a cursor of package debug and shows. It sends nothing and decides nothing:
// what acts on a run is a command of package main, performed on the bare terminal after
// the screen has stepped aside, and only once acting was allowed. Text that somebody else
// wrote reaches the terminal through package terminal only, and is the last thing on its
// line, so that no character of unusual width can shift anything of ours.
package screen
