package audit_test

import (
	"context"
	"fmt"
	"strings"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
)

// A run is exported where it was made, and checked where only the public keys are.
func Example() {
	ctx := context.Background()
	engine := enginetest.NewMemory(nil, nil)
	if _, err := engine.Start(ctx, enginetest.Spec("r-1"), "operator", []agent.Body{enginetest.Task}); err != nil {
		fmt.Println(err)
		return
	}
	world := &enginetest.World{}
	script := enginetest.Script{{enginetest.ToolRead}}
	if err := engine.Serve(ctx, agent.ServeOptions{Runs: []string{"r-1"}}, world.Nodes(script)); err != nil {
		fmt.Println(err)
		return
	}

	var file strings.Builder
	bodies := func(ref agent.BodyRef) ([]byte, error) { return engine.Body(ctx, "r-1", ref) }
	if err := audit.Export(&file, engine.Journal(ctx, "r-1", 1, false), bodies); err != nil {
		fmt.Println(err)
		return
	}

	trusted := []string{enginetest.Key("alice").Public().String(), enginetest.Key("bob").Public().String()}
	report, err := audit.CheckExport(strings.NewReader(file.String()), trusted)
	fmt.Println(report.State, report.Entries, report.Counts.Sends, report.Counts.Bodies, err)

	forged := strings.Replace(file.String(), `"status":"ok"`, `"status":"failed"`, 1)
	_, err = audit.CheckExport(strings.NewReader(forged), trusted)
	fmt.Println(err)
	// Output:
	// completed 7 1 6 <nil>
	// journal integrity: run "r-1", entry 5: chain: it is not the entry that entry 6 names
}
