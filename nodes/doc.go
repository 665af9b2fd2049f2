// Package nodes performs the effects of a run: one file for each state that works.
//
// model.go asks the model and turns its reply into proposals or an answer;
// execute.go prepares a call and sends it; observe.go validates the outcome, stores
// the data and writes the one message that the model gets for the call;
// awaiting_approval.go shows a candidate; needs_verification.go brings evidence about
// a write whose outcome is unknown. Each takes an [agent.Task] and returns an
// [agent.Report]. None writes the run's state, and none can decide anything: what a
// report means, [agent.Step] says.
//
// What the model is told comes from three places only: the [Rules], the journal's
// message bodies in their order ([Context]), and the fixed sentences in sentences.go.
// Text of a tool server reaches the model inside the member "untrusted" of a tool
// message and nowhere else. Content never enters the journal: nodes hand bodies back
// beside their results.
//
// Models live in nodes/llm, the bridge to tool servers in tools/bridge.
package nodes
