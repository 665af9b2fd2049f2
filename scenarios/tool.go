package scenarios

import (
	"context"
	"fmt"

	"sallyport/agent"
	"sallyport/tools"
)

// PinnedTool is a tool as the run pinned it: its contract and the definition that was
// found when the run began.
func PinnedTool(ctx context.Context, e agent.Engine, run agent.Run, name string) (*tools.Tool, error) {
	s, err := ReadSetup(ctx, e, run)
	if err != nil {
		return nil, err
	}
	pin, pinned := run.Spec.Tool(name)
	contract, contracted := s.Contract(name)
	if !pinned || !contracted {
		return nil, fmt.Errorf("read tool %q of run %s: the run has none of that name", name, run.ID)
	}
	data, err := e.Body(ctx, run.ID, s.definition(pin.Definition))
	if err != nil {
		return nil, fmt.Errorf("read tool %s of run %s: %w", name, run.ID, err)
	}
	definition, err := tools.ParseDefinition(data)
	if err == nil && definition.Digest != pin.Definition {
		err = fmt.Errorf("%w: it is not the definition that the run pins", agent.ErrIntegrity)
	}
	if err != nil {
		return nil, fmt.Errorf("read tool %s of run %s: %w", name, run.ID, err)
	}
	tool, err := tools.NewTool(contract, definition)
	if err != nil {
		return nil, fmt.Errorf("read tool %s of run %s: %w", name, run.ID, err)
	}
	return tool, nil
}
