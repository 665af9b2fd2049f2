package docserver

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/tools/strictjson"
)

// The tools, by the names that the server gives them.
const (
	ToolSearch = "search_documents"
	ToolRead   = "read_document"
	ToolSave   = "save_report"
	ToolStatus = "report_status"
	ToolSettle = "settle_report"
)

// Tools lists the names of all tools in the order of tools/list.
func Tools() []string { return []string{ToolRead, ToolStatus, ToolSave, ToolSearch, ToolSettle} }

// Definition returns the definition of a tool as every client receives it in tools/list, in canonical form,
// and its digest: what the claim "definition" of a grant must be. It is the same in every protocol version.
// For an unknown tool both are empty.
func Definition(tool string) (canonical []byte, digest string) {
	for _, t := range definitions() {
		if t.Name != tool {
			continue
		}
		canonical, err := canonicalDefinition(t)
		if err != nil {
			panic(err) // the definitions are constants of this package, and a test encodes them
		}
		return canonical, strictjson.Digest(canonical)
	}
	return nil, ""
}

func canonicalDefinition(t *mcp.Tool) ([]byte, error) {
	sent, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode definition of %q: %w", t.Name, err)
	}
	canonical, err := strictjson.Canonical(sent)
	if err != nil {
		return nil, fmt.Errorf("encode definition of %q: %w", t.Name, err)
	}
	return canonical, nil
}

func definitions() []*mcp.Tool {
	return []*mcp.Tool{
		{
			Name: ToolSearch,
			Description: "Finds a literal, case-sensitive text in the first 64 files of the source folder and returns one excerpt " +
				"for each matching file. No hit means no literal match in the files examined and nothing more.",
			InputSchema: input(`{
				"query": {"type": "string", "minLength": 1, "maxLength": 80, "description": "the text to find, exactly as written"},
				"max_results": {"type": "integer", "minimum": 1, "maximum": 3, "default": 3, "description": "end after this many files"}
			}`, `["query"]`),
			OutputSchema: output(`{
				"hits": {"type": "array", "items": {"type": "object", "properties": {
					"filename": {"type": "string"}, "excerpt": {"type": "string"}
				}, "required": ["filename", "excerpt"], "additionalProperties": false}},
				"skipped": {"type": "integer", "minimum": 0},
				"examined": {"type": "integer", "minimum": 0},
				"truncated": {"type": "boolean"}
			}`),
			Annotations: readHints,
		},
		{
			Name:        ToolRead,
			Description: "Returns the whole text of one source file of at most 24,000 bytes.",
			InputSchema: input(`{"filename": `+filename+`}`, `["filename"]`),
			OutputSchema: output(`{
				"filename": {"type": "string"}, "content": {"type": "string"}
			}`),
			Annotations: readHints,
		},
		{
			Name:        ToolSave,
			Description: "Creates one new report file with exactly the given content and never replaces an existing one. It needs a grant that an approver signed for these arguments.",
			InputSchema: input(`{
				"filename": `+filename+`,
				"content": {"type": "string", "minLength": 1, "maxLength": 8000, "description": "the whole text of the report, at most 24,000 bytes"},
				"grant": `+grantField+`
			}`, `["filename", "content", "grant"]`),
			OutputSchema: output(`{
				"filename": {"type": "string"}, "bytes": {"type": "integer", "minimum": 0}
			}`),
			Annotations: &mcp.ToolAnnotations{DestructiveHint: no(), OpenWorldHint: no()},
		},
		{
			Name:         ToolStatus,
			Description:  "Tells whether a report of this name exists, with its size and digest and without its content.",
			InputSchema:  input(`{"filename": `+filename+`}`, `["filename"]`),
			OutputSchema: output(`{` + reportFields + `}`),
			Annotations:  readHints,
		},
		{
			Name:         ToolSettle,
			Description:  "Declares the approval of one report void, so that it can never be used again, and tells whether it had been used and whether the report exists.",
			InputSchema:  input(`{"filename": `+filename+`, "grant": `+grantField+`}`, `["filename", "grant"]`),
			OutputSchema: output(`{` + reportFields + `, "spent": {"type": "boolean"}}`),
			Annotations:  &mcp.ToolAnnotations{DestructiveHint: no(), IdempotentHint: true, OpenWorldHint: no()},
		},
	}
}

// The hints of SPEC D13. They grant nothing.
var readHints = &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()}

func no() *bool { return new(bool) }

// Parts of the schemas. A grant has at most 2,048 characters, and two are joined by a dot.
const (
	filename = `{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\\.md$",
		"description": "one file name such as notes.md, without any folder"}`
	grantField   = `{"type": "string", "minLength": 1, "maxLength": 4097, "description": "filled in by the host, never by a model"}`
	reportFields = `"exists": {"type": "boolean"}, "bytes": {"type": "integer", "minimum": 0}, "sha256": {"type": "string"}`
)

func input(properties, required string) json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": ` + properties + `, "required": ` + required + `, "additionalProperties": false}`)
}

// output declares the one shape of SPEC D7 around the fields of data, none of which is there unless the
// status is ok.
func output(data string) json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {
		"status": {"type": "string", "enum": ["ok", "rejected", "failed", "result_unknown"]},
		"message": {"type": "string"},
		"data": {"type": "object", "properties": ` + data + `, "additionalProperties": false, "default": {}}
	}, "required": ["status", "message"], "additionalProperties": false}`)
}
