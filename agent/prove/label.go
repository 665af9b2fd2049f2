package prove

import (
	"strings"

	"sallyport/agent"
)

// label says what a step of a path is.
type label struct {
	says   string // a sentence with {tool}, {with} and {by}
	tool   string
	with   string
	by     string
	extra  int  // what makes a path less simple than another of the same length
	late   bool // it answers an effect that is not open
	origin agent.Origin
	kind   agent.Kind
}

func starts(by, operator string) label {
	if by != operator {
		return label{says: "{by}, who is an approver too, starts the run.", by: by, extra: 1}
	}
	return label{says: "The operator starts the run."}
}

// named is a tool in a sentence.
func named(tool string) string {
	if tool == "" {
		return "a tool that the run does not have"
	}
	return tool
}

func (l label) sentence() string {
	return strings.NewReplacer("{tool}", named(l.tool), "{with}", l.with, "{by}", l.by).Replace(l.says)
}
