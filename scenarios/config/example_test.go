package config_test

import (
	"fmt"

	"sallyport/scenarios/config"
)

// Mistakes are named with their place, the line and what to write instead.
func ExampleParse() {
	_, err := config.Parse("sallyport.yaml", []byte("servers:\n  calc: {bultin: calc}\n"))
	fmt.Println(err)
	// Output:
	// sallyport.yaml:2:10: servers.calc: unknown key "bultin"
	//   2 |   calc: {bultin: calc}
	//     |          ^
	//   did you mean "builtin"?
}
