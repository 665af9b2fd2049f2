// Package scenarios owns the files that people write about runs: task files, which say
// what an agent is to do, and scenario files, which add a scripted model, the files of
// a workspace, the decisions to give, and what must hold in the end.
//
// It loads them strictly ([LoadCases]), begins and serves runs with real parts ([Host]),
// and plays a scenario on a stage of its own ([Stage]) and compares ([Play]). What a run
// is served with is stored beside its journal when it begins ([Setup]), so that another
// process can go on with it and no later edit of a file changes it.
//
// A play acts between the effects of its run as operators, the clock and approvers of
// the scenario do, and keeps what the journal does not hold on a tape: what the model
// was asked, the verdicts, what was shown. Where a scenario has faults, the run is
// served in legs ([Leg]): processes that die for real, one after the other.
//
// It decides nothing and asks nobody: the only signatures it makes are those that a
// scenario gives, with a key that was made for that one play and is pinned as scripted
// (SPEC G2). Contracts and servers are read by package scenarios/config; commands and
// prompts are cmd/sallyport's.
package scenarios
