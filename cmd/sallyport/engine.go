package main

import "sallyport/agent/embedded"

// tuned, where a test sets it before the command starts, changes how the engine is
// opened: a test ends the process at a crash point, or moves the engine's clock. The
// command itself never sets it.
var tuned func(*embedded.Config)

// engineConfig is how every command opens the engine.
func engineConfig() embedded.Config {
	config := embedded.Config{Actor: account()}
	if tuned != nil {
		tuned(&config)
	}
	return config
}
