// Package temporal will own the engine for many machines: the same agent.Step inside one
// Temporal workflow per run, its nodes as activities. So far it holds the proof that the
// seam is in the right place, as a test: see docs/decisions/0011-temporal-spike.md. It
// refuses forks by name. It is
// a module of its own, since the SDK costs more to build than all of sallyport.
package temporal
