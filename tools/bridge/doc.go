// Package bridge is the Host's side of tool servers: it starts them as child
// processes, speaks MCP with them over stdio, and makes of one proposal of the model
// at most one request (SPEC B).
//
// A [Bridge] belongs to one run. [Bridge.Prepare] does everything but the call, in the
// order of SPEC B10, and may be repeated; [Bridge.Send] sends exactly one tools/call
// and classifies what comes back, in the order of SPEC B9; [Bridge.ReadBack] brings
// the evidence that a contract declares for a write whose outcome is unknown.
// [Discover] asks every server once, before a run exists.
//
// What a server sends passes a filter before anything is decoded: bounded lines, one
// strict JSON value each, a reply only to a request that is open. Definitions and
// results are hashed, validated and kept as those bytes, never as maps of float64. No
// text of a server leaves the package except as a body for the operator: the reasons
// of outcomes are fixed words.
//
// The package decides nothing about risk or approval (package tools reads contracts,
// package agent verifies signatures) and writes no journal. It never retries.
package bridge
