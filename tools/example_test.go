package tools_test

import (
	"errors"
	"fmt"

	"sallyport/agent"
	"sallyport/tools"
)

// A write without a rollback is refused before anything starts.
func ExampleValidate() {
	servers := []tools.Server{{Prefix: "other", Command: []string{"node", "server.js"}}}
	contracts := []tools.Contract{{
		Name: "other__write", Owner: "research-desk", Risk: agent.RiskWrite,
		Approval: &tools.Approval{Approvers: 1}, SideEffect: "writes a file", Rollback: "none",
	}}
	for _, p := range tools.Validate(servers, contracts) {
		fmt.Println(p)
	}
	// Output:
	// tools.other__write.rollback: a write tool needs `rollback`; "none" says nothing
}

// The model's arguments are read once. What comes out is what is hashed, shown,
// approved and sent.
func ExampleDecodeArguments() {
	schema, err := tools.NewSchema([]byte(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
		"query":{"type":"string"},"max_results":{"type":"integer","minimum":1,"maximum":3,"default":3}}}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	arguments, err := tools.DecodeArguments(`{ "query": "evidence" }`, schema)
	fmt.Println(string(arguments), err)

	_, err = tools.DecodeArguments(`{"query":"evidence","max_results":2.0}`, schema)
	fmt.Println(err, errors.Is(err, tools.FieldType))
	// Output:
	// {"max_results":3,"query":"evidence"} <nil>
	// wrong_type at max_results true
}
