package tools

import "slices"

// Reason is a fixed word that says which rule refused something. It may go into a log,
// a journal and a report; what a server or a model wrote may not.
type Reason string

// Error makes a reason an error of its own.
func (r Reason) Error() string { return string(r) }

// Why a tool's definition, or its schemas, are refused; the tool is quarantined
// (SPEC B3, B4).
const (
	DefinitionMalformed Reason = "definition_malformed" // not one strict JSON object, or a known member of the wrong type
	DefinitionTooLarge  Reason = "definition_too_large" // over MaxDefinition
	DefinitionName      Reason = "definition_name"      // a name that is empty, too long or not printable
	DefinitionPin       Reason = "definition_pin"       // not the definition that the contract pins
	InputNotObject      Reason = "input_not_object"     // the input schema is not of type object
	OutputMissing       Reason = "output_missing"       // no output schema, or one that says nothing
	SchemaKeyword       Reason = "schema_keyword"       // a keyword outside the accepted list
	SchemaDialect       Reason = "schema_dialect"       // a $schema that is not accepted
	SchemaDepth         Reason = "schema_depth"         // deeper than MaxSchemaDepth
	SchemaNodes         Reason = "schema_nodes"         // more than MaxSchemaNodes
	SchemaInvalid       Reason = "schema_invalid"       // not a valid schema
	SchemaPattern       Reason = "schema_pattern"       // not a valid, or too large a, regular expression
	SchemaDefault       Reason = "schema_default"       // a default that its own schema refuses
	GrantFieldMissing   Reason = "grant_field_missing"  // the contract's grant field is no string property
	ContractArgument    Reason = "contract_argument"    // the contract names an argument that the tool does not have
	GrantFieldElsewhere Reason = "grant_field_in_data"  // the grant field would show in enum, const or default
)

// Why arguments or a result are refused (SPEC B6, B9).
const (
	ValueTooLarge   Reason = "too_large"         // over the limit in bytes
	ValueNotObject  Reason = "not_an_object"     // not exactly one strict JSON object
	ValueMalformed  Reason = "malformed"         // not one strict JSON value, or a number past its limits
	FieldUnknown    Reason = "unknown_field"     // a field that the schema does not have
	FieldMissing    Reason = "missing_field"     // a required field is absent
	FieldGrant      Reason = "grant_field"       // the model sent the field that carries the grant
	FieldType       Reason = "wrong_type"        // another JSON type; 1.0 is no integer
	FieldLength     Reason = "length"            // a text or a list too short or too long
	FieldRange      Reason = "range"             // a number out of bounds, or bounded and written with an exponent
	FieldEnum       Reason = "not_in_enum"       // none of the listed values
	FieldPattern    Reason = "pattern"           // a text that does not match
	FieldNoBranch   Reason = "no_branch"         // no alternative of anyOf fits
	FieldNone       Reason = "never_valid"       // the schema accepts nothing here
	ValueTooComplex Reason = "too_complex"       // checking would cost more than MaxWork
	ValueInvalid    Reason = "schema_violation"  // the second validator refused it
	ValuePanic      Reason = "validator_failure" // the second validator broke down
)

// KeywordError is a [SchemaKeyword] refusal that says which keyword it was, so that an
// operator knows what to allow or to mend.
type KeywordError struct {
	// Keyword is one of JSON Schema's own; empty for anything else a server wrote.
	Keyword string
}

// Error is the reason, with the keyword and, where a contract can allow it, how.
func (e *KeywordError) Error() string {
	switch {
	case e.Keyword == "":
		return string(SchemaKeyword)
	case slices.Contains(WidenKeywords, e.Keyword):
		return string(SchemaKeyword) + ": " + e.Keyword + " (the contract can allow it with `schema: [" + e.Keyword + "]`)"
	}
	return string(SchemaKeyword) + ": " + e.Keyword
}

// Unwrap makes errors.Is and errors.As find the [Reason].
func (e *KeywordError) Unwrap() error { return SchemaKeyword }

func refusedKeyword(name string) error {
	if !slices.Contains(WidenKeywords, name) && !slices.Contains(knownKeywords, name) {
		name = ""
	}
	return &KeywordError{Keyword: name}
}

// knownKeywords are keywords of JSON Schema that no contract can allow.
var knownKeywords = []string{
	"$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$ref",
	"$schema", "$vocabulary", "additionalItems", "allOf", "contains", "contentEncoding", "contentMediaType",
	"contentSchema", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "deprecated", "else",
	"examples", "id", "if", "maxContains", "maxProperties", "minContains", "minProperties", "multipleOf", "not",
	"oneOf", "patternProperties", "prefixItems", "propertyNames", "readOnly", "then", "unevaluatedItems",
	"unevaluatedProperties", "uniqueItems", "writeOnly",
}
