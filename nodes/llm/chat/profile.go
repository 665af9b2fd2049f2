package chat

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sallyport/nodes"
)

// Profile says how one kind of provider differs from the others. The zero value is of
// no use: see [For].
type Profile struct {
	Name string

	// MaxTokens is the name of the field that bounds what the model writes.
	MaxTokens string
	// EmptyContent is the JSON of the content of a turn that holds calls and no text.
	EmptyContent string
	// Replay lists the reasoning fields that go back with the turn that they came with,
	// under the name that they came with; all others stay here.
	Replay []string
	// ReplayEmpty says that every turn with calls must hold the first field of Replay as
	// soon as one does, if only as an empty text.
	ReplayEmpty bool
	// ToolName says that a tool message repeats the tool's name.
	ToolName bool
	// ParsesHistory says that the provider reads the arguments of earlier calls as
	// JSON objects, and refuses the whole request if one is none.
	ParsesHistory bool
	// MergeUsers says that two messages of the user in a row are sent as one, because
	// the templates of many models refuse them.
	MergeUsers bool
	// Drop lists the schema keywords that are left out of the copy of a schema that is
	// sent. Arguments are always checked against the whole schema.
	Drop []string
	// SerialModels lists the beginnings of model names for which parallel_tool_calls is
	// not sent, because they refuse the field whatever it says.
	SerialModels []string
	// EmptyArguments says that no arguments at all stand for {}: for a tool without
	// required fields, and noted with the turn (CASES M1).
	EmptyArguments bool
	// Finish translates the provider's own words for how a turn ended.
	Finish map[string]string
}

// overloaded is what a word of [Profile.Finish] means that says that the provider gave up
// for want of resources: the turn is not refused, it is asked for again.
const overloaded = "overloaded"

var (
	reasoningModels = []string{"o1", "o3", "o4"}
	// What engines turn into a grammar: unanchored patterns and long texts are refused there.
	grammarKeywords = []string{"format", "maxLength", "minLength", "pattern"}
	engineWords     = map[string]string{
		"eos": nodes.FinishStop, "eos_token": nodes.FinishStop,
		"tool_call": nodes.FinishToolCalls, "function_call": nodes.FinishToolCalls,
	}
	hostedWords = map[string]string{"function_call": nodes.FinishToolCalls}
)

// profiles is the table, in the order in which it is shown.
var profiles = []Profile{
	{
		Name: "openai", MaxTokens: "max_completion_tokens", EmptyContent: "null",
		SerialModels: reasoningModels, Finish: hostedWords,
	},
	{
		Name: "azure", MaxTokens: "max_completion_tokens", EmptyContent: "null",
		SerialModels: reasoningModels, Finish: hostedWords,
	},
	{
		Name: "ollama", MaxTokens: "max_tokens", EmptyContent: `""`,
		Replay: []string{"reasoning"}, ToolName: true, ParsesHistory: true, Finish: engineWords,
	},
	{
		Name: "vllm", MaxTokens: "max_tokens", EmptyContent: "null",
		Replay: []string{"reasoning", "reasoning_content"}, ToolName: true, ParsesHistory: true, MergeUsers: true,
		EmptyArguments: true, Finish: engineWords,
	},
	{
		Name: "llamacpp", MaxTokens: "max_tokens", EmptyContent: `""`,
		Replay: []string{"reasoning_content"}, ToolName: true, ParsesHistory: true, MergeUsers: true,
		Drop: grammarKeywords, EmptyArguments: true, Finish: engineWords,
	},
	{
		Name: "deepseek", MaxTokens: "max_tokens", EmptyContent: "null",
		Replay: []string{"reasoning_content"}, ReplayEmpty: true,
		Finish: map[string]string{"insufficient_system_resource": overloaded},
	},
	{
		Name: "lmstudio", MaxTokens: "max_tokens", EmptyContent: `""`,
		ParsesHistory: true, MergeUsers: true, Drop: grammarKeywords, EmptyArguments: true, Finish: engineWords,
	},
}

// Profiles are the names of all profiles, the default first.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return names
}

// For returns the profile of a name.
func For(name string) (Profile, error) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, fmt.Errorf("there is no profile %q; there are: %s", name, strings.Join(Profiles(), ", "))
	}
	return profiles[i], nil
}

// Guess names the profile that an endpoint's address suggests: by the host for services,
// by the usual port for engines on this machine, else "openai".
func Guess(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "openai"
	}
	host := strings.ToLower(u.Hostname())
	for suffix, name := range map[string]string{
		".openai.azure.com": "azure", ".cognitiveservices.azure.com": "azure", ".services.ai.azure.com": "azure",
		".deepseek.com": "deepseek",
	} {
		if strings.HasSuffix("."+host, suffix) {
			return name
		}
	}
	switch u.Port() {
	case "11434":
		return "ollama"
	case "8000":
		return "vllm"
	case "8080":
		return "llamacpp"
	case "1234":
		return "lmstudio"
	}
	return "openai"
}

// finish is what a provider's word for the end of a turn means. A word that the profile
// does not know stays as it is, and refuses the turn.
func (p Profile) finish(word string) string {
	switch word {
	case nodes.FinishStop, nodes.FinishToolCalls, nodes.FinishLength, nodes.FinishFilter:
		return word
	}
	if means, ok := p.Finish[word]; ok {
		return means
	}
	if len(word) > maxWord {
		return "unknown"
	}
	return word
}
