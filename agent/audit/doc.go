// Package audit re-checks a run from its journal alone: what an auditor believes who
// does not believe the program that wrote it.
//
// [Check] walks the entries twice at once. [agent.Apply] steps through them again, and
// a witness of this package, which shares no code with Step but the table that both
// are told by, keeps books of its own: who signed which bytes, what was sent, what
// became of it, what it cost. A hole in either is seen by the other. The first break
// is a [*Break] that names its entry; what is merely open, such as a write whose
// outcome nobody knows, is a [Finding].
//
// [Export] writes a run as one file that holds all of it, and [CheckExport] checks
// such a file on a machine that has nothing but the public keys.
//
// What a journal cannot show by itself is that its end was cut off. An approval signs
// the head of the history that its candidate was made from, so [Report.Signed] names
// the last entry that a person's key vouches for: what is before it cannot be missing.
package audit
