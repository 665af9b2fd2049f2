package agent

import (
	"bytes"
	"encoding/json"
)

// Substitute gives, in a fork, what the open effect brings, in place of performing it: a
// turn of the model where one is asked for, or what a call returns that is prepared.
// Exactly one of the two is set. The effect is opened anew and brings exactly this, see
// [Substitute.Answer]; nothing is performed for it. It makes no write look done, spends
// no tokens, and counts no call.
type Substitute struct {
	Turn *Turned `json:"turn,omitempty"` // its usage is zero
	// Outcome was never sent, has the reason [ReasonSubstituted], and is ok only of a
	// call that reads. Its body is a raw result as the tool would have given it.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Answer is what the effect brings.
func (e Substitute) Answer() Result {
	if e.Turn != nil {
		return *e.Turn
	}
	return Returned{Outcome: *e.Outcome, Substituted: true}
}

// bodies are those that come with the decision.
func (e Substitute) bodies() (refs []BodyRef) {
	if e.Turn != nil {
		refs = e.Turn.bodies()
	}
	if e.Outcome != nil {
		refs = append(refs, e.Outcome.Body)
	}
	return refs
}

func (s *stepper) substitute(e Substitute) (Row, error) {
	open := s.run.Open
	switch {
	case s.run.Spec.Fork == nil:
		return "", refuse(CodeIllegal, "only in a fork can an operator replace what happens: fork the run first")
	case (e.Turn == nil) == (e.Outcome == nil):
		return "", refuse(CodeInvalid, "a substitute is a turn or an outcome")
	case open == nil || e.Turn != nil && open.Kind != Ask || e.Outcome != nil && open.Kind != Prepare:
		return "", refuse(CodeIllegal, "the run is in %s and does not wait for what is given", place(s.run.State))
	case e.Turn != nil && (e.Turn.Message.IsZero() || e.Turn.Usage != Usage{}):
		return "", refuse(CodeInvalid, "a turn that is given has a message, and no usage")
	case e.Turn != nil:
		if err := s.exposes(*e.Turn); err != nil {
			return "", err
		}
	case e.Outcome.Status == StatusOK && s.run.tool().Name == "", !substitutable(s.run.tool().Risk, *e.Outcome, false):
		return "", refuse(CodeInvalid, "an outcome %s (%s, %s) cannot be given for a call of this tool", e.Outcome.Status, e.Outcome.Class, e.Outcome.Reason)
	}
	s.wants, s.gives = open.Kind, &e
	return RowSubstituted, nil
}

// substitutable reports whether an operator may give this outcome for a call of that
// risk: nothing was sent, and a write is not made to look done. Once it is observed, its
// reason may be another: that it was no valid result.
func substitutable(risk Risk, out Outcome, observed bool) bool {
	if out.Sent || out.Request != "" || out.Reason != ReasonSubstituted && !observed {
		return false
	}
	switch out.Status {
	case StatusOK:
		return out.Class == ClassOK && !risk.Writes()
	case StatusRejected, StatusFailed, StatusUnavailable:
		return out.Class != ClassOK && out.Class != ClassBudget
	case StatusResultUnknown, StatusWaitingApproval:
	}
	return false
}

// answeredBy checks that r is what an operator gave, if one did, and that what nobody
// gave does not say so.
func (o *OpenEffect) answeredBy(r Result) error {
	returned, ok := r.(Returned)
	if o.Substitute == nil {
		if ok && returned.Substituted {
			return refuse(CodeInvalid, "an outcome that no operator gave")
		}
		return nil
	}
	want, err1 := json.Marshal(o.Substitute.Answer())
	got, err2 := json.Marshal(r)
	if err1 != nil || err2 != nil || r.kind() != o.Substitute.Answer().kind() || !bytes.Equal(want, got) {
		return refuse(CodeStale, "an operator has given what the effect brings")
	}
	return nil
}
