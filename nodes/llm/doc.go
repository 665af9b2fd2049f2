// Package llm holds models that answer [nodes.Model].
//
// A [Script] is a model that says what a file tells it to: it makes runs repeatable,
// needs no account and no network, and checks on the way that the run shows the model
// what it should. It keeps no state: which turn is due follows from the transcript, so
// a run that is resumed in another process, or after a crash, goes on with the right
// turn. Its mode "obey" plays a model that does whatever a tool's output asks.
package llm
