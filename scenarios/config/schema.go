package config

import _ "embed" // the JSON Schema

// Schema is the JSON Schema of sallyport.yaml, for editors. It says what of the rules a
// JSON Schema can say; [Load] decides.
//
//go:embed sallyport.schema.json
var Schema []byte
