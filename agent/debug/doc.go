// Package debug looks at a run step by step, forwards and backwards, and says why it is
// where it is. It only reads: a [Source] has no way to send anything, so that going back
// and forth repeats nothing. What acts on a run are the ordinary commands.
package debug
