package tools

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Registry is the one place that knows which prefix is which server and which name is
// which tool. Both come from trusted configuration; a server can neither choose nor
// override one (SPEC B1). It does not change once made.
type Registry struct {
	servers   []Server
	contracts []Contract
	byPrefix  map[string]int
	byName    map[string]int
}

// NewRegistry resolves the contracts' names and registers servers and contracts. The
// error is the first of [Validate]'s problems.
func NewRegistry(servers []Server, contracts []Contract) (*Registry, error) {
	if problems := Validate(servers, contracts); len(problems) > 0 {
		return nil, problems[0]
	}
	r := &Registry{
		servers: servers, contracts: Resolve(contracts),
		byPrefix: make(map[string]int, len(servers)), byName: make(map[string]int, len(contracts)),
	}
	for i, s := range r.servers {
		r.byPrefix[s.Prefix] = i
	}
	for i, c := range r.contracts {
		r.byName[c.Name] = i
	}
	return r, nil
}

// Server returns the server of that prefix.
func (r *Registry) Server(prefix string) (Server, bool) {
	i, ok := r.byPrefix[prefix]
	if !ok {
		return Server{}, false
	}
	return r.servers[i], true
}

// Contract returns the contract of that model-side name.
func (r *Registry) Contract(name string) (Contract, bool) {
	i, ok := r.byName[name]
	if !ok {
		return Contract{}, false
	}
	return r.contracts[i], true
}

// Servers lists the servers in the order of the configuration.
func (r *Registry) Servers() []Server { return r.servers }

// Contracts lists the contracts in the order of the configuration.
func (r *Registry) Contracts() []Contract { return r.contracts }

// ModelTool is a tool as the model is told of it.
type ModelTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // the exposed schema: closed, without the grant field
}

// Wire is the tool in the form of Chat Completions, with strict false (SPEC B5).
func (t ModelTool) Wire() (json.RawMessage, error) {
	type function struct {
		ModelTool
		Strict bool `json:"strict"`
	}
	wire, err := json.Marshal(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{ModelTool: t}})
	if err != nil {
		return nil, fmt.Errorf("encode tool %q for the model: %w", t.Name, err)
	}
	return wire, nil
}

// CheckExposed reports what would make the model mix up the tools that it is shown
// (SPEC C6): names that are equal after folding case and separators, descriptions that
// are equal or empty. Servers are asked first, so this is known only after discovery.
func CheckExposed(exposed []ModelTool) []Problem {
	var problems []Problem
	names, texts := map[string]string{}, map[string]string{}
	for _, t := range exposed {
		add := func(format string, args ...any) {
			problems = append(problems, problem(fmt.Sprintf(format, args...), "tools", t.Name))
		}
		if other, taken := names[fold(t.Name)]; taken {
			add("the name differs from %s only in case or separators: give one of them another alias (key and `tool:`)", other)
		}
		names[fold(t.Name)] = t.Name
		text := strings.ToLower(strings.Join(strings.Fields(t.Description), " "))
		other, taken := texts[text]
		switch {
		case text == "":
			add("the tool has no description: write one or two sentences in `description:`")
		case taken:
			add("the description is the same as that of %s: write another in `description:`", other)
		}
		texts[text] = t.Name
	}
	return problems
}
