package scriptserver

import (
	"fmt"
	"time"
)

// The protocol versions that a script speaks unless it names others, the preferred one first.
const (
	stateless = "2026-07-28" // every request carries its version
	older     = "2025-11-25" // begins with initialize
)

// Script is the whole behaviour of a server. The zero value is an honest server without tools.
type Script struct {
	// Name and Version are what the server says of itself; "scripted" and "1" if empty.
	Name    string `yaml:"name" json:"name,omitzero"`
	Version string `yaml:"version" json:"version,omitzero"`
	// Instructions are the server's words for a model.
	Instructions *Text `yaml:"instructions" json:"instructions,omitzero"`
	// Protocols are the versions that are negotiated, the preferred one first: any text. Empty is
	// 2026-07-28 and 2025-11-25.
	Protocols []string `yaml:"protocols" json:"protocols,omitzero"`
	// Capabilities replace those of the handshake.
	Capabilities Value `yaml:"capabilities" json:"capabilities,omitzero"`
	// Tools are listed in this order.
	Tools []Tool `yaml:"tools" json:"tools,omitzero"`
	// Pages say how the list is cut; it is one page otherwise.
	Pages *Pages `yaml:"pages" json:"pages,omitzero"`
	// Methods are replies to requests and notifications by their method, before any other.
	Methods map[string][]Reply `yaml:"methods" json:"methods,omitzero"`
	// Starts are what the server does before it reads: the first whose When holds.
	Starts []Start `yaml:"starts" json:"starts,omitzero"`
	// Ignores are what an honest server heeds.
	Ignores []Ignored `yaml:"ignores" json:"ignores,omitzero"`
	// Forget makes every start count from the beginning. Otherwise what is counted is counted over all
	// starts in one folder.
	Forget bool `yaml:"forget" json:"forget,omitzero"`
}

// Ignored is something that a server may be deaf to.
type Ignored string

// What can be ignored.
const (
	IgnoreCancel    Ignored = "cancel"    // notifications/cancelled
	IgnoreEnd       Ignored = "end"       // the end of the input
	IgnoreTerminate Ignored = "terminate" // SIGTERM, SIGINT and SIGHUP
)

// UnmarshalText reads one of the words.
func (i *Ignored) UnmarshalText(text []byte) error {
	switch word := Ignored(text); word {
	case IgnoreCancel, IgnoreEnd, IgnoreTerminate:
		*i = word
		return nil
	}
	return fmt.Errorf("%q cannot be ignored: write cancel, end or terminate", text)
}

// Definition is what a tool's definition says. What is absent is not sent, but for the input schema,
// which is then {"type":"object"}.
type Definition struct {
	// Name is any text; with [Tool.Count], $N in it is the tool's number.
	Name string `yaml:"name" json:"name,omitzero"`
	// Title and Description are any text; with [Tool.Count], $N in them is the tool's number.
	Title        *Text `yaml:"title" json:"title,omitzero"`
	Description  *Text `yaml:"description" json:"description,omitzero"`
	InputSchema  Value `yaml:"input_schema" json:"input_schema,omitzero"`
	OutputSchema Value `yaml:"output_schema" json:"output_schema,omitzero"`
	Annotations  Value `yaml:"annotations" json:"annotations,omitzero"`
	// Meta is the member _meta.
	Meta Value `yaml:"meta" json:"meta,omitzero"`
	// Members are any other members, by name.
	Members map[string]Value `yaml:"members" json:"members,omitzero"`
	// Raw is the whole definition as it goes onto the wire; Name is then only what calls are known by.
	Raw *Text `yaml:"raw" json:"raw,omitzero"`
}

// Tool is one tool of the list, and how calls of it are answered.
type Tool struct {
	Definition
	// Result is "status" for a tool that answers {status, message, data}: it declares that schema.
	Result string `yaml:"result" json:"result,omitzero"`
	// Count makes that many tools of one.
	Count int `yaml:"count" json:"count,omitzero" check:"positive"`
	// When says when it is listed: always, if nil.
	When *When `yaml:"when" json:"when,omitzero"`
	// Changes replace parts of the definition: all whose When holds, in order.
	Changes []Change `yaml:"changes" json:"changes,omitzero"`
	// Replies answer calls; without one a call is answered "Done.".
	Replies []Reply `yaml:"replies" json:"replies,omitzero"`
}

// resultStatus is the only word of [Tool.Result].
const resultStatus = "status"

// Change is a part of a definition that is another one for a time.
type Change struct {
	When *When `yaml:"when" json:"when,omitzero"`
	Definition
	// Gone leaves the tool out.
	Gone bool `yaml:"gone" json:"gone,omitzero"`
}

// Pages cut a list.
type Pages struct {
	// Size is how many tools a page has; 0 is all of them.
	Size int `yaml:"size" json:"size,omitzero" check:"positive"`
	// Cursors are what stands in nextCursor of the first page, of the second and so on, in place of the
	// server's own. There are at least so many pages and one more; pages past the last tool are empty.
	Cursors []string `yaml:"cursors" json:"cursors,omitzero"`
	// Endless gives every page a next one.
	Endless bool `yaml:"endless" json:"endless,omitzero"`
}

// When is a condition: all that is given must hold.
type When struct {
	// Start counts the starts of the server in its folder: 1 is the first.
	Start *Span `yaml:"start" json:"start,omitzero"`
	// Lists counts the lists that were begun, the present one included.
	Lists *Span `yaml:"lists" json:"lists,omitzero"`
	// Calls counts the calls of all tools, the present one included.
	Calls *Span `yaml:"calls" json:"calls,omitzero"`
	// Exists and Absent name a file below the server's files that is there, or is not.
	Exists *Text `yaml:"exists" json:"exists,omitzero"`
	Absent *Text `yaml:"absent" json:"absent,omitzero"`
}

// Acts are done in this order; the answer, if there is one, comes after Before.
type Acts struct {
	// Delay is waited first. A request that is cancelled meanwhile is dropped, and nothing is done.
	Delay Duration `yaml:"delay" json:"delay,omitzero"`
	// Writes change files, for real, and durably as far as the end of the process goes.
	Writes []Write `yaml:"writes" json:"writes,omitzero"`
	// Spawn starts a process that outlives the server if nobody ends it.
	Spawn *Spawn `yaml:"spawn" json:"spawn,omitzero"`
	// Stderr is written to stderr.
	Stderr []Frame `yaml:"stderr" json:"stderr,omitzero"`
	// Before is written to stdout.
	Before []Frame `yaml:"before" json:"before,omitzero"`
	// CloseStdout closes it; the server goes on.
	CloseStdout bool `yaml:"close_stdout" json:"close_stdout,omitzero"`
	// Deaf makes the server read no more.
	Deaf bool `yaml:"deaf" json:"deaf,omitzero"`
	// Exit ends the server with that code, at once.
	Exit *int `yaml:"exit" json:"exit,omitzero"`
}

// Start is what a server does before it reads anything.
type Start struct {
	When *When `yaml:"when" json:"when,omitzero"`
	Acts
}

// Reply is one reply of a list. A request takes the first that fits and is not used up, else the last
// that fits. Without an answer of its own (at most one of: Text and Structured, Status with Message and
// Data, Result, Error, Frames, Silent) the request is answered as an honest server would, unless it closes
// the output or ends the server: then it is not answered.
type Reply struct {
	// Arguments fit if the call has each of them with exactly this value.
	Arguments map[string]Value `yaml:"arguments" json:"arguments,omitzero"`
	When      *When            `yaml:"when" json:"when,omitzero"`
	// Times is how often it is used before the next one; 0 is once.
	Times int `yaml:"times" json:"times,omitzero" check:"positive"`
	Acts
	// After is written to stdout, after the answer.
	After []Frame `yaml:"after" json:"after,omitzero"`
	// Text is a result of one text block; Structured its structured content.
	Text       *Text `yaml:"text" json:"text,omitzero"`
	Structured Value `yaml:"structured" json:"structured,omitzero"`
	// Status, Message and Data are a result of that shape.
	Status  string `yaml:"status" json:"status,omitzero"`
	Message *Text  `yaml:"message" json:"message,omitzero"`
	Data    Value  `yaml:"data" json:"data,omitzero"`
	// IsError marks a result of Text, Structured or Status.
	IsError bool `yaml:"is_error" json:"is_error,omitzero"`
	// Result is the whole result, any JSON.
	Result Value `yaml:"result" json:"result,omitzero"`
	// Error is an error reply.
	Error *Fault `yaml:"error" json:"error,omitzero"`
	// Frames are written in place of a reply. $ID in them is the id of the request.
	Frames []Frame `yaml:"frames" json:"frames,omitzero"`
	// Silent means that no reply ever comes.
	Silent bool `yaml:"silent" json:"silent,omitzero"`
	// Copies is how often the answer is sent; 0 is once.
	Copies int `yaml:"copies" json:"copies,omitzero" check:"positive"`
	// Hold keeps the answer back until that many later requests were answered.
	Hold int `yaml:"hold" json:"hold,omitzero" check:"positive"`
}

// Fault is an error object of JSON-RPC.
type Fault struct {
	Code    int   `yaml:"code" json:"code,omitzero"`
	Message *Text `yaml:"message" json:"message,omitzero"`
	Data    Value `yaml:"data" json:"data,omitzero"`
}

// Frame is bytes for an output: a line, which gets a line feed, or raw bytes, which do not.
type Frame struct {
	Line *Text `yaml:"line" json:"line,omitzero"`
	Raw  *Text `yaml:"raw" json:"raw,omitzero"`
	// Times repeats it; 0 is once.
	Times int `yaml:"times" json:"times,omitzero" check:"positive"`
	// Pause is waited after each.
	Pause Duration `yaml:"pause" json:"pause,omitzero"`
}

// Write changes one file below the server's files. Folders on the way are made.
type Write struct {
	File    Text  `yaml:"file" json:"file,omitzero"`
	Content *Text `yaml:"content" json:"content,omitzero"`
	// Append adds to the file in place of replacing it.
	Append bool `yaml:"append" json:"append,omitzero"`
	// Remove removes the file, if it is there.
	Remove bool `yaml:"remove" json:"remove,omitzero"`
}

// Spawn is a process of the same program that does nothing.
type Spawn struct {
	// NewSession takes it out of the server's session and process group.
	NewSession bool `yaml:"new_session" json:"new_session,omitzero"`
	// Bare empties its environment, and with it every mark by which it could be found.
	Bare bool `yaml:"bare" json:"bare,omitzero"`
	// Stubborn makes it ignore SIGTERM, SIGINT and SIGHUP.
	Stubborn bool `yaml:"stubborn" json:"stubborn,omitzero"`
	// KeepStdout leaves it the server's stdout, which then stays open after the server.
	KeepStdout bool `yaml:"keep_stdout" json:"keep_stdout,omitzero"`
	// For is how long it lives if nobody ends it; 0 is a minute.
	For Duration `yaml:"for" json:"for,omitzero"`
}

// Duration is a length of time as people write it: 50ms, 5s, 1m.
type Duration time.Duration

// UnmarshalText reads a Go duration. A bare number has no unit and is refused.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no length of time: write a number with a unit, such as 50ms, 5s or 1m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
