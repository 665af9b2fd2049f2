package tools

import (
	"slices"
	"strings"
	"time"

	"sallyport/agent"
)

// Contract is what the operator says of one tool, and the only source of its risk
// (SPEC C1). What is not contracted is invisible.
type Contract struct {
	// Name is the key under `tools`: prefix, two underscores, and the server's own
	// name or an alias of it. The model knows the tool by this name.
	Name string `yaml:"-" json:"name"`
	// Tool is the server's own name where Name holds an alias.
	Tool string `yaml:"tool" json:"tool,omitempty"`
	// Owner answers for the contract.
	Owner string `yaml:"owner" json:"owner,omitempty"`
	// Risk is read, write, destructive or settle.
	Risk agent.Risk `yaml:"risk" json:"risk"`
	// HostOnly hides the tool from the model; the Host itself calls it.
	HostOnly bool `yaml:"host_only" json:"host_only,omitempty"`
	// Result is status for a tool that answers in the shape of SPEC D7, else empty
	// and the Host derives the status (SPEC B13).
	Result string `yaml:"result" json:"result,omitempty"`
	// Output is none for a tool without an output schema (SPEC B3).
	Output string `yaml:"output" json:"output,omitempty"`
	// Approval asks for signatures. A write needs one by default, a read none.
	Approval *Approval `yaml:"approval" json:"approval,omitempty"`
	// SideEffect and Rollback are shown to whoever approves.
	SideEffect string `yaml:"side_effect" json:"side_effect,omitempty"`
	Rollback   string `yaml:"rollback" json:"rollback,omitempty"`
	// GrantField is the argument that carries the grant: hidden from the model and
	// filled in by the Host (SPEC B5).
	GrantField string `yaml:"grant_field" json:"grant_field,omitempty"`
	// Settle is the read-back that decides on an unknown outcome.
	Settle *Settle `yaml:"settle" json:"settle,omitempty"`
	// Redact names arguments whose value stays out of logs and exports.
	Redact []string `yaml:"redact" json:"redact,omitempty"`
	// Effect is send for a tool whose effect leaves the machine or reaches a person.
	Effect string `yaml:"effect" json:"effect,omitempty"`
	// Send is on where the operator's own file has switched a send tool on.
	Send string `yaml:"send" json:"send,omitempty"`
	// Recipients names the arguments that say whom a send tool reaches.
	Recipients []string `yaml:"recipients" json:"recipients,omitempty"`
	// Pin is the digest that the definition must have; empty pins what is found when
	// a run starts.
	Pin string `yaml:"pin" json:"pin,omitempty"`
	// Logs names what is logged of a call; [AlwaysLogged] always is.
	Logs []string `yaml:"logs" json:"logs,omitempty"`
	// Timeout replaces the server's for this tool.
	Timeout Duration `yaml:"timeout" json:"timeout,omitempty" check:"positive"`
	// Schema widens the accepted schema keywords for this tool (SPEC B4).
	Schema []string `yaml:"schema" json:"schema,omitempty"`
	// Description replaces the server's for the model.
	Description string `yaml:"description" json:"description,omitempty"`
}

// Approval says how many people sign, and how long a candidate and a grant last.
type Approval struct {
	// Approvers is how many different keys must sign.
	Approvers int `yaml:"approvers" json:"approvers" check:"positive"`
	// Expires is how long a candidate may wait for a decision.
	Expires Duration `yaml:"expires" json:"expires" check:"positive"`
	// UseWithin is how long a grant holds, from signing.
	UseWithin Duration `yaml:"use_within" json:"use_within" check:"positive"`
	// Role is what an approver must hold to sign; empty asks for none.
	Role string `yaml:"role" json:"role"`
	// OwnKey lets the operator who began the run be one of several approvers.
	OwnKey bool `yaml:"own_key" json:"own_key"`
}

// Settle is the read-back after a write whose outcome must be known.
type Settle struct {
	// Tool is the contract that is called: host-only, of the same server.
	Tool string `yaml:"tool" json:"tool"`
	// Args maps each argument of Tool to an argument of the write, or to [GrantArg].
	Args map[string]string `yaml:"args" json:"args,omitempty"`
	// AppliedWhen maps a field of the read-back's data to what it must be for the
	// write to count as applied.
	AppliedWhen map[string]Match `yaml:"applied_when" json:"applied_when"`
	// Voids says that the tool makes sure that the candidate cannot take effect any
	// more, so that absence means "not applied".
	Voids bool `yaml:"voids" json:"voids,omitempty"`
}

// GrantArg stands, as a value of [Settle.Args], for the grant of the write.
const GrantArg = "$grant"

// Match compares a field of the read-back with an argument of the write; exactly one
// of the two names that argument.
type Match struct {
	// SHA256Of names the argument whose text has the SHA-256 that the field holds.
	SHA256Of string `yaml:"sha256_of" json:"sha256_of,omitempty"`
	// Equals names the argument that the field equals.
	Equals string `yaml:"equals" json:"equals,omitempty"`
}

// The fixed words of a contract.
const (
	ResultStatus = "status" // Contract.Result
	OutputNone   = "none"   // Contract.Output
	EffectSend   = "send"   // Contract.Effect
	SendOn       = "on"     // Contract.Send
)

// Defaults of an approval (SPEC C2, G1).
const (
	DefaultExpires   = 24 * time.Hour
	DefaultUseWithin = 10 * time.Minute
)

// AlwaysLogged is what the log holds of every call, whatever the contract says
// (SPEC C1).
var AlwaysLogged = []string{"correlation_id", "sanitized_arguments", "approval_decision", "result_status"}

// Prefix is the server's prefix: what stands before the first two underscores.
func (c Contract) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, Separator)
	return prefix
}

// Remote is the server's own name of the tool.
func (c Contract) Remote() string {
	if c.Tool != "" {
		return c.Tool
	}
	_, alias, _ := strings.Cut(c.Name, Separator)
	return alias
}

// Exposed reports whether the model is to know the tool: it is not host-only, and not
// a send tool that is switched off.
func (c Contract) Exposed() bool { return !c.HostOnly && !c.Off() }

// Off reports whether the tool sends something out and the operator has not switched
// it on (SPEC C2).
func (c Contract) Off() bool { return c.Effect == EffectSend && c.Send != SendOn }

// Approvers is how many signatures by different keys a call needs: none for a read
// without `approval`, at least one for a write and two for a destructive tool,
// whatever the contract leaves out (SPEC C2).
func (c Contract) Approvers() int {
	if c.HostOnly || c.Risk == agent.RiskSettle || c.Approval == nil && !c.Risk.Writes() {
		return 0
	}
	if c.Approval == nil {
		return leastApprovers(c.Risk)
	}
	return max(c.Approval.Approvers, leastApprovers(c.Risk))
}

// Expires is how long a candidate of the tool may wait for a decision.
func (c Contract) Expires() time.Duration {
	if c.Approval == nil || c.Approval.Expires == 0 {
		return DefaultExpires
	}
	return c.Approval.Expires.Std()
}

// UseWithin is how long a grant for the tool holds, from signing.
func (c Contract) UseWithin() time.Duration {
	if c.Approval == nil || c.Approval.UseWithin == 0 {
		return DefaultUseWithin
	}
	return c.Approval.UseWithin.Std()
}

// Limit is the tool's time limit: its own, else the server's.
func (c Contract) Limit(s Server) time.Duration {
	if c.Timeout == 0 {
		return s.Limit()
	}
	return c.Timeout.Std()
}

// Logged lists what is logged of a call: the four that always are, and what the
// contract adds.
func (c Contract) Logged() []string {
	logs := slices.Clone(AlwaysLogged)
	for _, l := range c.Logs {
		if !slices.Contains(logs, l) {
			logs = append(logs, l)
		}
	}
	return logs
}
