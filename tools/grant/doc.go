// Package grant owns what a person signs: the candidate of one call, the
// claims over it, the envelope that carries them, and the keys.
//
// A [Candidate] names one effect exactly: server, workspace, run, tool, call,
// definition, and the digest of the argument bytes. An approver signs [Claims]
// over it with a [PrivateKey]; whoever performs or records the effect opens the
// wire with [Keys.OpenGrant] and compares every claim that it knows itself.
// Edits, refusals and statements about unknown outcomes are signed likewise,
// each kind under a payload type of its own, so that a signature of one kind
// never passes as another.
//
// Opening proves who signed which bytes and nothing else: not that the time is
// right ([Claims.CheckTime]), not that the grant is unspent (the server's
// ledger), not that the claims are those of the call at hand (the caller
// compares). The package never performs an effect, keeps no state, and imports
// the standard library only; it must stay a leaf, because host, server and core
// all verify with it.
package grant
