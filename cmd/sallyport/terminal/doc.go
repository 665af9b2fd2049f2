// Package terminal owns what a person sees and types: it shows text that somebody
// else wrote so that it can deceive nobody, shows a candidate in full with the
// authoritative facts last, and asks the one question.
//
// It never decides what an answer means for a run, signs nothing, and writes only to
// the writer that it is given. Package main wires it to runs.
package terminal
