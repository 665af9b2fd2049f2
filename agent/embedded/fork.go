package embedded

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"sallyport/agent"
)

// fork starts a run with what it carries of its parent, or returns errTaken. What it
// names of the parent's bodies is copied in the same transaction: what becomes of the
// parent later does not matter to it.
func (e *Engine) fork(ctx context.Context, spec agent.Spec, actor string, bodies []agent.Body) (agent.Run, error) {
	if _, err := e.find(ctx, spec.Run); !errors.Is(err, agent.ErrNoRun) {
		if err == nil {
			err = errTaken // whatever has become of the parent
		}
		return agent.Run{}, err
	}
	parent, err := e.find(ctx, spec.Fork.Run)
	if err != nil {
		return agent.Run{}, err
	}
	commits, refs, err := agent.Carry(spec, actor, e.entries(ctx, parent, 1, min(parent.seq, spec.Fork.Seq)), e.config.Now())
	if err != nil {
		return agent.Run{}, err
	}
	commits[0].Bodies = bodies
	refs = slices.DeleteFunc(refs, func(ref agent.BodyRef) bool {
		return slices.ContainsFunc(bodies, func(b agent.Body) bool { return b.Ref == ref })
	})
	for _, ref := range refs { // that it is there, and what its name says
		if _, err := e.body(ctx, parent, ref); err != nil {
			return agent.Run{}, fmt.Errorf("carry entries of run %s: %w", parent.id, err)
		}
	}
	err = e.writer.do(spec.Run, func(tx *transaction) error { return tx.fork(parent, commits, refs) })
	return commits[len(commits)-1].Run, err
}

// fork begins a run with bodies of another. It changes nothing where one of them has
// gone meanwhile ([agent.ErrNoBody]), or their run ([agent.ErrNoRun]).
func (t *transaction) fork(parent row, commits []agent.Commit, refs []agent.BodyRef) error {
	var found int
	err := t.scan("SELECT 1 FROM runs WHERE num = ? AND id = ?", []any{parent.num, parent.id}, &found)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("run %s: it was collected: %w", parent.id, agent.ErrNoRun)
	}
	if err != nil {
		return err
	}
	sums := make([][]byte, len(refs))
	for i, ref := range refs {
		if sums[i], err = hex.DecodeString(ref.SHA256); err != nil {
			return fmt.Errorf("body %s: %w", ref, err)
		}
		var size int64
		err := t.scan("SELECT length(data) FROM bodies WHERE run = ? AND sha256 = ?", []any{parent.num, sums[i]}, &size)
		if errors.Is(err, sql.ErrNoRows) || err == nil && size != ref.Bytes {
			return fmt.Errorf("body %s of run %s: %w", ref, parent.id, agent.ErrNoBody)
		}
		if err != nil {
			return err
		}
	}
	fork, err := t.begin(commits)
	if err != nil {
		return err
	}
	for _, sum := range sums {
		if _, err := t.exec(`INSERT INTO bodies (run, sha256, data) SELECT ?, sha256, data FROM bodies
			WHERE run = ? AND sha256 = ? ON CONFLICT DO NOTHING`, fork.num, parent.num, sum); err != nil {
			return err
		}
	}
	return nil
}
