// Package picture draws a run from its journal: the state machine with where the run has
// been, and the time that it spent there. It reads entries and nothing else, so that no
// picture can hold content: no arguments, no results, nothing that a model wrote.
//
// [Read] makes a [Story] of the entries. [Story.Graph] and [Story.Timeline] draw it as SVG,
// each in three sizes, for light and dark; [Story.Page] is the timeline as one HTML file.
// [Story.Text], [Story.Mermaid] and [Story.Dot] are the machine in words. A zero Story is
// the machine alone, without a run.
//
// Every picture is one file that loads nothing and runs nothing. Names that others chose
// are escaped twice: characters that do not plainly show, then what XML reserves. A long
// run is drawn in bins, so that a picture stays below [MaxBytes].
//
// palette.go holds the colours, machine.go the layout by hand, scale.go how time becomes
// width.
package picture
