package docserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"sallyport/tools/grant"
	"sallyport/workspace"
)

// defaultLockWait bounds how long a save or settle waits for the ledger, less than a Host waits for an answer.
const defaultLockWait = 3 * time.Second

// Why a grant that verifies is refused, for the log.
var (
	errClaims = errors.New("claims do not match this call")
	errVoided = errors.New("candidate is void")
	errSpent  = errors.New("candidate is spent")
)

// grantErrors are the reasons of package grant; their texts are fixed.
var grantErrors = []error{
	grant.ErrMalformed, grant.ErrKind, grant.ErrUnknownKey, grant.ErrSignature, grant.ErrClaims, grant.ErrApprover,
	grant.ErrCount, grant.ErrDisagree, grant.ErrSameApprover, grant.ErrNotYetValid, grant.ErrExpired,
	grant.ErrMismatch, grant.ErrArguments,
}

// saveData is the data of save_report.
type saveData struct {
	Filename string `json:"filename"`
	Bytes    int64  `json:"bytes"`
}

// save answers save_report. The order is that of SPEC D5: shape, signature, ledger, times, claims, byte
// limit, ledger entry, creation. The ledger is held from the look-up until the outcome is known.
func (s *Server) save(ctx context.Context, raw []byte) result {
	args, err := s.parseSave(raw)
	if err != nil {
		return refusedSave.because(err)
	}
	grants, err := s.keys.OpenGrants(args.Grant, s.approvers)
	if err != nil {
		return refusedSave.because(err)
	}
	candidate := grants[0].Candidate
	lock, lockErr := s.lockLedger(ctx)
	if lockErr == nil {
		defer lock.Release()
	}
	if used, ok := s.used(candidate.ID); ok {
		return used
	}
	if lockErr != nil {
		return withoutLedger(lockErr)
	}
	if err := checkTimes(grants, s.now()); err != nil {
		return refusedSave.because(err)
	}
	if err := s.checkClaims(candidate, args.granted); err != nil {
		return refusedSave.because(err)
	}
	if len(args.Content) > workspace.MaxFileBytes {
		return tooLargeSave.because(workspace.ErrTooLarge)
	}
	if err := lock.Spend(candidate.ID); err != nil {
		return failedSave.because(err)
	}
	return s.create(ctx, args)
}

// create writes the report of a candidate that is spent by now.
func (s *Server) create(ctx context.Context, args saveArguments) result {
	outcome, err := s.workspace.Save(ctx, args.Filename, []byte(args.Content))
	switch outcome {
	case workspace.SaveCreated:
		return result{Status: StatusOK, Message: "The report was saved.", Data: saveData{args.Filename, int64(len(args.Content))}}
	case workspace.SaveExists:
		return takenSave.because(err)
	case workspace.SaveNotWritten:
		return failedSave.because(err)
	case workspace.SaveUnknown:
	}
	return unknownSave.because(err)
}

// used tells whether the ledger ends the matter. A ledger that cannot be read leaves doubt about an earlier
// use, so it counts as spent.
func (s *Server) used(candidate string) (result, bool) {
	switch state, err := s.ledger.State(candidate); {
	case err != nil:
		return unknownSave.because(err), true
	case state == workspace.CandidateSpent:
		return spentSave.because(errSpent), true
	case state == workspace.CandidateVoided:
		return voidSave.because(errVoided), true
	}
	return result{}, false
}

// withoutLedger answers for a candidate that has no entry while the ledger could not be locked. Whoever
// holds the lock for that long may be saving just this candidate; a lock that cannot even be asked for
// says nothing of the kind.
func withoutLedger(err error) result {
	if errors.Is(err, context.DeadlineExceeded) {
		return unknownSave.because(err)
	}
	return failedSave.because(err)
}

func (s *Server) lockLedger(ctx context.Context) (*workspace.LedgerLock, error) {
	ctx, cancel := context.WithTimeout(ctx, s.lockWait)
	defer cancel()
	return s.ledger.Lock(ctx)
}

func checkTimes(grants []grant.Claims, now time.Time) error {
	for _, claims := range grants {
		if err := claims.CheckTime(now); err != nil {
			return err
		}
	}
	return nil
}

// checkClaims compares every claim that the server knows. Run, call and journal head are the Host's.
func (s *Server) checkClaims(c grant.Candidate, arguments []byte) error {
	if !s.addressed(c) || c.Definition != s.saveDefinition {
		return errClaims
	}
	fields, err := grant.Fields(arguments)
	if err != nil {
		return err
	}
	if !slices.Equal(fields, c.Fields) {
		return errClaims
	}
	return c.Matches(arguments)
}

// addressed: the candidate is for this server, this scope and the saving tool.
func (s *Server) addressed(c grant.Candidate) bool {
	return c.Audience == s.audience && c.Scope == s.scope && c.Tool == ToolSave
}

// settle answers settle_report (SPEC D12a). The grant must verify, be addressed here and be for this file
// name; its times do not matter, and neither does the definition it was given for: an approval that is
// too old to be used can still be declared void. A spent candidate stays spent.
func (s *Server) settle(ctx context.Context, raw []byte) result {
	args, err := s.parseSettle(raw)
	if err != nil {
		return refusedSettle.because(err)
	}
	grants, err := s.keys.OpenGrants(args.Grant, s.approvers)
	if err != nil {
		return refusedSettle.because(err)
	}
	candidate := grants[0].Candidate
	if !s.addressed(candidate) || !namesFile(candidate, args.Filename) {
		return refusedSettle.because(errClaims)
	}
	lock, err := s.lockLedger(ctx)
	if err != nil {
		return failedSettle.because(err)
	}
	defer lock.Release()
	spent, err := lock.Void(candidate.ID)
	if err != nil {
		return failedSettle.because(err)
	}
	return s.examine(ctx, args.Filename, &spent)
}

// namesFile: the candidate's digest of the file name is that of name.
func namesFile(c grant.Candidate, name string) bool {
	sum := sha256.Sum256([]byte(name))
	for _, field := range c.Fields {
		if field.Name == "filename" {
			return field.SHA256 == hex.EncodeToString(sum[:])
		}
	}
	return false
}
