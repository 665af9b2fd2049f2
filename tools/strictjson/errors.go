package strictjson

import "errors"

// The reasons for which a text is refused. All errors of this package wrap one
// of them; none holds any part of the input.
var (
	// ErrSyntax: the text is not JSON.
	ErrSyntax = errors.New("strictjson: not valid JSON")
	// ErrTrailing: something other than white space follows the value.
	ErrTrailing = errors.New("strictjson: data after the JSON value")
	// ErrDuplicate: an object names a member twice, escapes undone.
	ErrDuplicate = errors.New("strictjson: duplicate member name")
	// ErrUTF8: the text is not UTF-8, or escapes half of a surrogate pair.
	ErrUTF8 = errors.New("strictjson: not valid Unicode text")
	// ErrDepth: objects and arrays are nested too deeply.
	ErrDepth = errors.New("strictjson: nested too deeply")
	// ErrNumber: the text of a number is too long or its exponent too large.
	ErrNumber = errors.New("strictjson: number too long or exponent too large")
	// ErrTooLarge: the text has too many bytes.
	ErrTooLarge = errors.New("strictjson: text too large")
	// ErrNotObject: the value is JSON, but no object.
	ErrNotObject = errors.New("strictjson: not a JSON object")
	// ErrNull: null stands where the Go value has no room for it.
	ErrNull = errors.New("strictjson: unexpected null")
	// ErrUnknown: an object has a member that the Go value does not have.
	ErrUnknown = errors.New("strictjson: unknown member name")
	// ErrType: a value is of another JSON type, or out of range, for the Go value.
	ErrType = errors.New("strictjson: value of the wrong type")
	// ErrTarget: the Go value given to [Decode] or [Encode] cannot carry JSON.
	ErrTarget = errors.New("strictjson: unusable Go value")
)
