package main

import (
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// loadFile loads a task or scenario file with the configuration that goes with it, and
// with a model of another name if one is given.
func (a *app) loadFile(path, model string) (*scenarios.Scenario, error) {
	s, err := scenarios.LoadFile(path, scenarios.LoadOptions{Config: a.configFile, Model: model})
	if err != nil {
		return nil, usage("", "%w", err)
	}
	for _, w := range s.Config.Warnings {
		a.warn("Warning", w.String())
	}
	if !s.IsScenario() {
		a.configured = &s.Config.State
	}
	return s, nil
}

// loadConfig loads the configuration for a command that is about no file: --config, or
// that of the folder we are in.
func (a *app) loadConfig() (*config.Config, error) {
	file := a.configFile
	if file == "" {
		var err error
		if file, err = config.Find("."); err != nil {
			return nil, usage("name one with --config FILE", "%w", err)
		}
	}
	c, err := config.Load(file, config.Options{})
	if err != nil {
		return nil, usage("", "%w", err)
	}
	a.configured = &c.State
	return c, nil
}
