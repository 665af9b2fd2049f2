package scenarios

import _ "embed" // the JSON Schemas

// The JSON Schemas of task and scenario files, for editors. They say what of the rules
// a JSON Schema can say; [LoadFile] decides.
var (
	//go:embed task.schema.json
	TaskSchema []byte
	//go:embed scenario.schema.json
	ScenarioSchema []byte
)
