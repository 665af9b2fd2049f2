package scriptserver

import _ "embed" // the JSON Schema

// Schema is the JSON Schema of a description, for editors, and for schemas of files that hold one: all of
// it is in $defs, as script and script_…. It says what of the rules a JSON Schema can say;
// [Script.Check] decides.
//
//go:embed script.schema.json
var Schema []byte
