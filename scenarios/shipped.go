package scenarios

import (
	"embed"
	"fmt"

	"sallyport/scenarios/config"
)

// The scenarios that are shipped, with their configuration.
//
//go:embed research
var shipped embed.FS

// Demo loads the scenario that `sallyport demo` plays. It is part of the executable.
func Demo() (*Scenario, error) {
	const name, configuration = "research/demo.yaml", "research/" + config.FileName
	data, err := shipped.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("load the demo: %w", err)
	}
	f, err := config.ParseFile(name, data)
	if err != nil {
		return nil, fmt.Errorf("load the demo: %w", err)
	}
	form, err := decodeForm(f)
	if err != nil {
		return nil, fmt.Errorf("load the demo: %w", err)
	}
	text, err := shipped.ReadFile(configuration)
	if err != nil {
		return nil, fmt.Errorf("load the demo: %w", err)
	}
	c, err := config.Parse(configuration, text)
	if err != nil {
		return nil, fmt.Errorf("load the demo: %w", err)
	}
	return build(name, f, form, c, LoadOptions{Getenv: func(string) string { return "" }})
}
