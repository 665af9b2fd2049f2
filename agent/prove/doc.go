// Package prove explores what a run can do, and shows that no call of a tool that
// writes is sent without the signatures that it needs.
//
// [Prove] takes the pinned part of a configuration (an [agent.Spec]: tools, approvers,
// budgets) and walks, breadth first, over every state that a run under it can be in.
// In each it offers [agent.Step] every kind of event of every origin: what a node, the
// model, the clock, an operator or an approver could bring, and what they should not:
// forged, late and repeated grants, grants for another candidate, other arguments, a
// changed definition, answers to effects that are no longer open, a crash. What Step
// takes leads on; what it refuses does not.
//
// Two states are one if they differ only in what Step can merely compare: digests,
// sequences, times before or after a deadline, counters beyond a bound. That makes the
// walk finite. Whether a Send was right is judged by books of the package's own, kept
// from the accepted events of each path, never from what Step wrote into the run.
//
// The package performs nothing, reads no clock and no file. Approvers' private keys
// are not known to anybody here: the walk signs with keys made for it, real Ed25519,
// under the approvers' names. What the proof does not cover (nodes, bridge, servers,
// the keys themselves) docs/prove.md lists.
package prove
