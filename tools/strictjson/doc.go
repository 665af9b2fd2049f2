// Package strictjson reads JSON that somebody else wrote, and writes the one
// form of it that both sides hash.
//
// [Check] decides whether a text may be decoded at all: one value, no
// duplicate names, no lone surrogates, bounded nesting and numbers, in time
// linear in its size. [Canonical] gives the form that digests are taken of:
// members sorted by the bytes of their names, no white space, minimal escapes,
// and number text kept as it was sent, because rounding a number above 2^53
// would change what a person approved. [Decode] and [Encode] carry Go values
// over that form without any of the liberties that encoding/json takes.
//
// The errors are fixed sentences and never quote the input, so that they may
// be shown to a model or written to a log. The package knows nothing of
// schemas: what a value means is checked by package tools.
package strictjson
