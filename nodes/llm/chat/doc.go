// Package chat is the wire form of Chat Completions: what is sent to a provider, and
// what is made of the bytes that come back. It opens no connection.
//
// A [Profile] is a row of what one kind of provider does differently. [Profile.Encode]
// writes the body of a request; [Profile.Decode] reads a whole response, and an
// [Assembler] a streamed one, to the same [nodes.Reply]. Everything is read from the
// raw bytes, strictly: a name twice, a number out of all proportion or half a character
// refuses the response, and JSON is never repaired. A turn counts only with a finish
// reason, and when streamed only with the end marker besides; without, no call leaves
// this package.
//
// What is no turn is a [*nodes.Unavailable] with one of this package's reasons. The client
// on top of it is nodes/llm/openai.
package chat
