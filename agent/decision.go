package agent

// Decision is what comes from outside a run: the sealed set of what persons and
// operators can say. Anybody may build one; what it is worth, [Step] decides: signed
// decisions carry their proof, the others come through the operator's door.
//
//sumtype:decl
type Decision interface {
	kind() Kind
	decision()
}

// Approve carries a signed grant for the pending candidate.
type Approve struct {
	Grant string `json:"grant"` // the wire form of one envelope
}

// Refuse turns the pending candidate down for good. It may be signed, and is then
// recorded under the signer's name, or come from the operator's terminal.
type Refuse struct {
	Candidate string `json:"candidate"` // its id
	Signed    string `json:"signed,omitempty"`
}

// Edit replaces the arguments of the pending candidate. It is signed, and grants
// nothing: the new candidate is prepared and asked for anew.
type Edit struct {
	Signed    string  `json:"signed"`
	Arguments BodyRef `json:"arguments"` // must be the digest that was signed
}

// Attest is a person's signed statement about a write whose outcome is unknown.
type Attest struct {
	Signed string `json:"signed"`
}

// Cancel ends a run: at once, or after a write in flight is settled. Abandon ends
// one whose outcome nobody knows, and says so for ever.
type Cancel struct {
	Abandon bool `json:"abandon,omitempty"`
}

// Pause withholds every effect that has not started.
type Pause struct{}

// Resume releases what was withheld.
type Resume struct{}

// StepOnce releases one effect of a paused run.
type StepOnce struct{}

// Extend raises the budgets of an open run by these amounts, none negative.
type Extend struct {
	Budget Budget `json:"budget"`
}

func (Substitute) decision() {}
func (Approve) decision()    {}
func (Refuse) decision()     {}
func (Edit) decision()       {}
func (Attest) decision()     {}
func (Cancel) decision()     {}
func (Pause) decision()      {}
func (Resume) decision()     {}
func (StepOnce) decision()   {}
func (Extend) decision()     {}

func (Substitute) kind() Kind { return KindSubstitute }
func (Approve) kind() Kind    { return KindApprove }
func (Refuse) kind() Kind     { return KindRefuse }
func (Edit) kind() Kind       { return KindEdit }
func (Attest) kind() Kind     { return KindAttest }
func (Cancel) kind() Kind     { return KindCancel }
func (Pause) kind() Kind      { return KindPause }
func (Resume) kind() Kind     { return KindResume }
func (StepOnce) kind() Kind   { return KindStepOnce }
func (Extend) kind() Kind     { return KindExtend }
