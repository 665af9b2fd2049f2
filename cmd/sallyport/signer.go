package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// signer finds and unlocks the key that a decision is signed with: the one called as,
// or else the only one, in the user's keys or those of the state directory, that the
// run knows and that has not signed this candidate yet.
type signer struct {
	app *app
	as  string // empty: whichever can
	dir string // the state directory
}

// pick chooses the key without unlocking it.
func (s signer) pick(run agent.Run) (keyRow, error) {
	home, err := configHome()
	if err != nil {
		return keyRow{}, err
	}
	var rows []keyRow
	for _, dir := range []string{home, s.dir} {
		found, err := keysIn(filepath.Join(dir, keysBelow))
		if err != nil {
			return keyRow{}, err
		}
		rows = append(rows, found...)
	}
	return pickKey(rows, s.as, run, time.Now())
}

// key is the key, unlocked.
func (s signer) key(ctx context.Context, run agent.Run) (grant.PrivateKey, error) {
	row, err := s.pick(run)
	if err != nil {
		return grant.PrivateKey{}, err
	}
	return s.app.unlock(ctx, row)
}

const makeKey = "make one with: sallyport keys new; runs that begin after that know it"

// pickKey chooses among the keys that are there.
func pickKey(rows []keyRow, as string, run agent.Run, now time.Time) (keyRow, error) {
	if as != "" {
		rows = slices.DeleteFunc(rows, func(r keyRow) bool { return r.Name != as })
		if len(rows) == 0 {
			return keyRow{}, fail(exitNoKey, "list your keys with: sallyport keys list", "sign for run %s: there is no key %q", run.ID, as)
		}
	}
	rows, broken := split(rows, func(r keyRow) bool { return r.Problem == "" })
	known := slices.DeleteFunc(slices.Clone(rows), func(r keyRow) bool { return !approves(run, r, now) })
	switch {
	case len(known) == 0 && len(broken) > 0:
		return keyRow{}, unusable(run, rows, broken)
	case len(rows) == 0:
		return keyRow{}, fail(exitNoKey, makeKey, "sign for run %s: you have no key", run.ID)
	case len(known) == 0:
		return keyRow{}, fail(exitNoKey, "its approvers are "+strings.Join(approverNames(run), ", "),
			"sign for run %s: none of your keys (%s) is one of its approvers", run.ID, names(rows))
	}
	entitled := slices.DeleteFunc(slices.Clone(known), func(r keyRow) bool { return !mayApprove(run, r) })
	if len(entitled) == 0 {
		return keyRow{}, fail(exitDenied, "another approver must sign", "sign for run %s: %s began the run, or has not the role that the tool needs", run.ID, names(known))
	}
	fresh := slices.DeleteFunc(slices.Clone(entitled), func(r keyRow) bool { return hasSigned(run, r) })
	switch {
	case len(fresh) == 0:
		return keyRow{}, fail(exitDenied, "another approver must sign", "sign for run %s: %s has signed this candidate already", run.ID, names(known))
	case len(fresh) > 1:
		return keyRow{}, usage("choose one with --as NAME", "sign for run %s: several of your keys can: %s", run.ID, names(fresh))
	}
	return fresh[0], nil
}

// split divides keys into those that hold and the others.
func split(rows []keyRow, holds func(keyRow) bool) (those, others []keyRow) {
	for _, r := range rows {
		if holds(r) {
			those = append(those, r)
		} else {
			others = append(others, r)
		}
	}
	return those, others
}

// unusable names the keys whose files are at fault: one of them may be the one that is
// wanted.
func unusable(run agent.Run, rows, broken []keyRow) error {
	var b strings.Builder
	for i, r := range broken {
		b.WriteString([]string{"", "; "}[min(i, 1)])
		fmt.Fprintf(&b, "key %s cannot be used: %s", r.Name, r.Problem)
	}
	if len(rows) > 0 {
		fmt.Fprintf(&b, "; none of the others (%s) is one of its approvers", names(rows))
	}
	return fail(exitNoKey, "mend or remove "+broken[0].Path+"; a private key is a file of your own with mode 0600",
		"sign for run %s: %s", run.ID, b.String())
}

// approves reports whether the run takes signatures of the key at that time.
func approves(run agent.Run, key keyRow, now time.Time) bool {
	return slices.ContainsFunc(run.Spec.Approvers, func(a agent.Approver) bool {
		return a.Key == key.Public && key.Public != "" && (a.NotAfter.IsZero() || now.Before(a.NotAfter))
	})
}

// mayApprove reports whether the pinned rules of the tool let the key sign: where two
// must, whoever began the run is none of them, unless the contract says so.
func mayApprove(run agent.Run, key keyRow) bool {
	if run.Call == nil {
		return true
	}
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	if tool.Approvers > 1 && !tool.OwnKey && key.Name == run.Operator {
		return false
	}
	return tool.Role == "" || slices.ContainsFunc(run.Spec.Approvers, func(a agent.Approver) bool {
		return a.Key == key.Public && slices.Contains(a.Roles, tool.Role)
	})
}

func hasSigned(run agent.Run, key keyRow) bool {
	return run.Call != nil && slices.ContainsFunc(run.Call.Grants, func(g agent.Grant) bool { return g.Key == key.ID })
}

func approverNames(run agent.Run) []string {
	var out []string
	for _, a := range run.Spec.Approvers {
		if k, err := grant.ParsePublicKey(a.Key); err == nil {
			out = append(out, k.Name)
		}
	}
	if len(out) == 0 {
		return []string{"nobody"}
	}
	return out
}

func names(rows []keyRow) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return strings.Join(out, ", ")
}

// unlock loads a private key and asks for its passphrase where it has one.
func (a *app) unlock(ctx context.Context, row keyRow) (grant.PrivateKey, error) {
	var passphrase []byte
	if row.Encrypted {
		if !a.asks() {
			return grant.PrivateKey{}, fail(exitNoKey, "run it on a terminal", "unlock key %s: there is nobody to ask for its passphrase", row.Name)
		}
		var err error
		if passphrase, err = a.console().Secret(ctx, "Passphrase of key "+row.Name+": "); err != nil {
			return grant.PrivateKey{}, secretErr(ctx, err)
		}
	}
	key, err := grant.LoadPrivateKey(row.Path, passphrase)
	if err != nil {
		return key, fail(exitNoKey, "", "unlock key %s: %w", row.Name, err)
	}
	return key, nil
}
