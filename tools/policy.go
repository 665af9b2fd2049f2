package tools

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// Problem is one thing that is wrong with a configuration, at a place.
type Problem struct {
	// Path leads to the place: keys from the root of the file.
	Path []string
	// Message says what is wrong and what to write instead.
	Message string
}

// Error is the place and the message.
func (p Problem) Error() string { return strings.Join(p.Path, ".") + ": " + p.Message }

func problem(message string, path ...string) Problem {
	return Problem{Path: path, Message: message}
}

// Limits of a contract that no configuration raises.
const (
	// MaxApprovers is how many signatures a contract may ask for.
	MaxApprovers = 8
	// MaxWait is the longest that a candidate may wait or a grant may hold.
	MaxWait = 366 * 24 * time.Hour
	// MaxText bounds a sentence of a contract, in bytes.
	MaxText = 2000
)

// Validate reports everything that is wrong with servers and contracts as a whole, in
// their order (SPEC B1, C1, C2). A configuration with a problem must not be used.
func Validate(servers []Server, contracts []Contract) []Problem {
	v := validator{servers: map[string]Server{}, contracts: map[string]Contract{}}
	for _, s := range servers {
		v.server(s)
	}
	for _, c := range contracts {
		v.register(c)
	}
	for _, c := range contracts {
		v.contract(c)
	}
	return v.problems
}

// Warnings reports what will work, but not as its author may think: a write whose
// outcome the Host can never know by itself (SPEC B13).
func Warnings(contracts []Contract) []Problem {
	var warnings []Problem
	for _, c := range contracts {
		writes := c.Risk == agent.RiskWrite || c.Risk == agent.RiskDestructive
		if writes && c.Settle == nil && c.Result != ResultStatus {
			warnings = append(warnings, problem(
				"every call will end with an unknown outcome that a person must verify: "+
					"the contract has neither `settle` nor `result: status`", "tools", c.Name))
		}
		if c.Off() {
			warnings = append(warnings, problem(
				"the tool sends something out and is switched off: switch it on with `send: on` in your own configuration", "tools", c.Name))
		}
	}
	return warnings
}

type validator struct {
	servers   map[string]Server
	contracts map[string]Contract
	bound     map[string]string // prefix and remote name → contract
	aliases   map[string]string // model-side name → contract
	path      []string
	problems  []Problem
}

// at adds a problem below the current path; keys lead to it.
func (v *validator) at(keys []string, format string, args ...any) {
	v.problems = append(v.problems, problem(fmt.Sprintf(format, args...), append(slices.Clone(v.path), keys...)...))
}

func key(k ...string) []string { return k }

// Servers.

func (v *validator) server(s Server) {
	v.path = []string{"servers", s.Prefix}
	if err := CheckPrefix(s.Prefix); err != nil {
		v.at(nil, "%v", err)
	}
	if _, taken := v.servers[s.Prefix]; taken {
		v.at(nil, "two servers have the prefix %q: prefixes are unique", s.Prefix)
	}
	v.servers[s.Prefix] = s
	switch {
	case s.Builtin == "" && len(s.Command) == 0:
		v.at(nil, "the server has neither `builtin: docs` or `builtin: calc` nor a `command: [program, argument…]`")
	case s.Builtin != "" && len(s.Command) > 0:
		v.at(key("command"), "a server is a builtin or a command, not both")
	case s.Builtin != "":
		v.builtin(s)
	default:
		v.command(s)
	}
	v.connection(s)
}

func (v *validator) builtin(s Server) {
	switch s.Builtin {
	case BuiltinDocs:
		if s.Root == "" {
			v.at(nil, "the builtin docs needs a `root`: the folder that holds sources/ and reports/")
		}
		if s.Scope == "" {
			v.at(nil, "the builtin docs needs a `scope`: the name that grants are bound to, such as desk/reading")
		}
	case BuiltinCalc:
		if s.Root != "" {
			v.at(key("root"), "the builtin calc has no files: remove `root`")
		}
	default:
		v.at(key("builtin"), "there is no builtin %q: it is docs or calc", s.Builtin)
	}
	if s.MirrorText && s.Builtin != BuiltinDocs {
		v.at(key("mirror_text"), "only the builtin docs mirrors its results as text")
	}
	if s.Dir != "" {
		v.at(key("dir"), "a builtin has no working directory: remove `dir`")
	}
	if len(s.Env) > 0 {
		v.at(key("env"), "a builtin reads no environment: remove `env`")
	}
}

func (v *validator) command(s Server) {
	if s.Command[0] == "" || slices.ContainsFunc(s.Command, hasNUL) {
		v.at(key("command"), "the command needs a program, and no part of it may hold a NUL character")
	}
	if s.Root != "" {
		v.at(key("root"), "only the builtin docs has a `root`: pass folders to other servers in `command`")
	}
	if s.MirrorText {
		v.at(key("mirror_text"), "only the builtin docs mirrors its results as text")
	}
	for i, name := range s.Env {
		switch {
		case !envName.MatchString(name):
			v.at(key("env", fmt.Sprint(i)), "%q is no name of a variable: list names only, the values come from your environment", name)
		case slices.Index(s.Env, name) < i:
			v.at(key("env", fmt.Sprint(i)), "variable %q is listed twice", name)
		}
	}
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	protocol = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (v *validator) connection(s Server) {
	v.timeout(s.Timeout)
	if s.MaxTools < 0 || s.MaxTools > MostTools {
		v.at(key("max_tools"), "max_tools is between 1 and %d", MostTools)
	}
	if s.Scope != "" && !isLabel(s.Scope, grant.MaxScope) {
		v.at(key("scope"), "a scope is visible text of at most %d bytes", grant.MaxScope)
	}
	if s.Protocol != "" && len(s.Protocols) > 0 {
		v.at(key("protocols"), "`protocol` pins one version and `protocols` lists several: keep one of them")
	}
	if s.Protocol != "" && !protocol.MatchString(s.Protocol) {
		v.at(key("protocol"), "%q is no protocol version: write a date such as %s", s.Protocol, DefaultProtocols[0])
	}
	for i, p := range s.Protocols {
		if !protocol.MatchString(p) {
			v.at(key("protocols", fmt.Sprint(i)), "%q is no protocol version: write a date such as %s", p, DefaultProtocols[0])
		}
	}
}

func (v *validator) timeout(d Duration) {
	if d < 0 || d > Duration(MaxTimeout) {
		v.at(key("timeout"), "a timeout is more than 0s and at most %s", MaxTimeout)
	}
}

func isLabel(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, notPrintable)
}

// Contracts.

// register notes what contracts may refer to, and refuses two that are bound to one
// tool: the second could be a read that reaches a write (SPEC C2).
func (v *validator) register(c Contract) {
	v.path = []string{"tools", c.Name}
	if v.bound == nil {
		v.bound, v.aliases = map[string]string{}, map[string]string{}
	}
	if _, twice := v.contracts[c.Name]; twice {
		v.at(nil, "two contracts have the name %q", c.Name)
		return
	}
	v.contracts[c.Name] = c
	remote := c.Prefix() + Separator + c.Remote()
	if other, taken := v.bound[remote]; taken {
		v.at(nil, "the tool has a contract already, %s: one tool, one contract", other)
	}
	v.bound[remote] = c.Name
	alias := Resolve([]Contract{c})[0].Name
	if other, taken := v.aliases[alias]; taken && other != c.Name {
		v.at(nil, "its alias %s is that of %s too: choose another key and name the server's tool in `tool:`", alias, other)
	}
	v.aliases[alias] = c.Name
}

func (v *validator) contract(c Contract) {
	v.path = []string{"tools", c.Name}
	v.name(c)
	v.words(c)
	switch c.Risk {
	case agent.RiskRead:
		v.read(c)
	case agent.RiskWrite, agent.RiskDestructive:
		v.write(c)
	case agent.RiskSettle:
		v.settleRisk(c)
	case "":
		v.at(nil, "the contract has no `risk`: it is read, write, destructive or settle")
	default:
		v.at(key("risk"), "there is no risk %q: it is read, write, destructive or settle", string(c.Risk))
	}
	v.builtinTool(c)
	v.approval(c)
	v.sending(c)
	if c.Settle != nil {
		v.settle(c)
	}
	v.timeout(c.Timeout)
}

func (v *validator) name(c Contract) {
	prefix, _, ok := strings.Cut(c.Name, Separator)
	switch {
	case !ok:
		v.at(nil, "a tool is named by its server's prefix, two underscores and its own name, such as docs__read_document")
		return
	case !isRemote(c.Remote()):
		v.at(nil, "the server's name of the tool must be visible text of 1 to %d bytes", grant.MaxTool)
	case c.Tool != "" && !isAlias(c.Name):
		v.at(nil, "with `tool:` the key is the name that the model sees: letters, digits, _ and -, at most %d characters", MaxName)
	}
	if _, known := v.servers[prefix]; !known {
		v.at(nil, "there is no server %q: %s", prefix, v.prefixes())
	}
}

func (v *validator) prefixes() string {
	if len(v.servers) == 0 {
		return "`servers` is empty"
	}
	return "`servers` has " + strings.Join(slices.Sorted(maps.Keys(v.servers)), ", ")
}

// words checks the members that hold one of a few fixed words.
func (v *validator) words(c Contract) {
	one := func(k, got string, allowed ...string) {
		if got != "" && !slices.Contains(allowed, got) {
			v.at(key(k), "`%s` is %s or absent, not %q", k, strings.Join(allowed, " or "), got)
		}
	}
	one("result", c.Result, ResultStatus)
	one("output", c.Output, OutputNone)
	one("effect", c.Effect, EffectSend)
	one("send", c.Send, SendOn)
	if c.Result == ResultStatus && c.Output == OutputNone {
		v.at(key("output"), "`result: status` is read from structured output: remove `output: none`")
	}
	if c.Pin != "" && !digest.MatchString(c.Pin) {
		v.at(key("pin"), "a pin is the SHA-256 of the definition: 64 lower-case hex digits")
	}
	for i, w := range c.Schema {
		if !slices.Contains(WidenKeywords, w) {
			v.at(key("schema", fmt.Sprint(i)), "schema keyword %q cannot be allowed: only %s can", w, strings.Join(WidenKeywords, ", "))
		}
	}
	for i, l := range c.Logs {
		if !slices.Contains(Loggable, l) {
			v.at(key("logs", fmt.Sprint(i)), "there is no log field %q: there are %s", l, strings.Join(Loggable, ", "))
		}
	}
	for _, t := range [][2]string{{"owner", c.Owner}, {"side_effect", c.SideEffect}, {"rollback", c.Rollback}, {"description", c.Description}} {
		if len(t[1]) > MaxText {
			v.at(key(t[0]), "the text is longer than %d bytes", MaxText)
		}
	}
}

// Loggable is what a contract may name under `logs`.
var Loggable = append(slices.Clone(AlwaysLogged),
	"tool", "server", "mcp_request_id", "model_call_id", "class", "reason", "approver")

// missing reports whether a text says nothing: absent, none or n/a, whatever the case
// and the space around it.
func missing(text string) bool {
	switch strings.Trim(strings.ToLower(strings.Join(strings.Fields(text), "")), ".-") {
	case "", "none", "n/a", "na":
		return true
	}
	return false
}

func (v *validator) need(c Contract, fields ...string) {
	for _, f := range fields {
		text := map[string]string{"owner": c.Owner, "side_effect": c.SideEffect, "rollback": c.Rollback}[f]
		switch {
		case text == "":
			v.at(nil, "a %s tool needs `%s`", c.Risk, f)
		case missing(text):
			v.at(key(f), "a %s tool needs `%s`; %q says nothing", c.Risk, f, text)
		}
	}
}

func (v *validator) read(c Contract) {
	v.need(c, "owner")
	if c.Settle != nil {
		v.at(key("settle"), "a read has nothing to settle: remove `settle`, or say `risk: write`")
	}
	if c.Rollback != "" && !missing(c.Rollback) {
		v.at(key("rollback"), "a read has nothing to roll back: remove `rollback`, or say `risk: write`")
	}
	if c.GrantField != "" && c.Approval == nil {
		v.at(key("grant_field"), "no grant is made for a read without `approval`")
	}
	if c.Effect == EffectSend {
		v.at(key("effect"), "what sends something out is no read: say `risk: write`")
	}
	if c.HostOnly && c.Approval != nil {
		v.at(key("approval"), "nobody is asked about what the Host itself reads: remove `approval`")
	}
}

func (v *validator) write(c Contract) {
	v.need(c, "owner", "side_effect", "rollback")
	if c.Approval == nil {
		v.at(nil, "a %s tool needs `approval`, such as `approval: {approvers: %d}`", c.Risk, leastApprovers(c.Risk))
	}
	if c.HostOnly {
		v.at(key("host_only"), "the Host itself calls no tool that writes: remove `host_only`")
	}
}

func (v *validator) settleRisk(c Contract) {
	v.need(c, "owner", "side_effect")
	if !c.HostOnly {
		v.at(nil, "a settle tool is for the Host only: add `host_only: true`")
	}
	if c.Approval != nil {
		v.at(key("approval"), "approval does not apply to a settle tool: remove it")
	}
	if c.Rollback != "" {
		v.at(key("rollback"), "rollback does not apply to a settle tool: remove it")
	}
	if c.Settle != nil {
		v.at(key("settle"), "a settle tool has nothing to settle itself: remove `settle`")
	}
	if c.Effect == EffectSend {
		v.at(key("effect"), "a settle tool can only void: it sends nothing out")
	}
	if c.GrantField != "" {
		v.at(key("grant_field"), "a settle tool gets its grant through the write's `settle.args`: remove `grant_field`")
	}
}

// leastApprovers is the least number of signatures of a risk, and the default.
func leastApprovers(r agent.Risk) int {
	if r == agent.RiskDestructive {
		return 2
	}
	return 1
}

func (v *validator) approval(c Contract) {
	a := c.Approval
	if a == nil {
		return
	}
	least := leastApprovers(c.Risk)
	switch {
	case a.Approvers != 0 && a.Approvers < least:
		v.at(key("approval", "approvers"), "a %s tool needs at least %d approvers", c.Risk, least)
	case a.Approvers > MaxApprovers:
		v.at(key("approval", "approvers"), "at most %d people sign for a call", MaxApprovers)
	}
	wait := func(k string, d Duration) {
		if d != 0 && (d < Duration(time.Second) || d > Duration(MaxWait)) {
			v.at(key("approval", k), "`%s` is at least 1s and at most %dh", k, int(MaxWait.Hours()))
		}
	}
	wait("expires", a.Expires)
	wait("use_within", a.UseWithin)
	if a.Role != "" && !IsRole(a.Role) {
		v.at(key("approval", "role"), "a role is a word of a-z, 0-9 and -, at most 32")
	}
	if a.OwnKey && c.Approvers() < 2 {
		v.at(key("approval", "own_key"), "`own_key` is for tools that need several approvers; with one, the operator may sign anyway")
	}
}

var role = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// IsRole reports whether a word can name what approvers hold.
func IsRole(word string) bool { return role.MatchString(word) }

func (v *validator) sending(c Contract) {
	if c.Effect == EffectSend {
		return
	}
	if c.Send != "" {
		v.at(key("send"), "`send: on` switches on a tool with `effect: send`; this is none")
	}
	if len(c.Recipients) > 0 {
		v.at(key("recipients"), "only a tool with `effect: send` has recipients")
	}
}

func (v *validator) settle(c Contract) {
	s := c.Settle
	target, known := v.contracts[s.Tool]
	switch {
	case s.Tool == "":
		v.at(key("settle"), "`settle` needs the `tool` that reads back")
	case s.Tool == c.Name:
		v.at(key("settle", "tool"), "a tool does not settle itself")
	case !known:
		v.at(key("settle", "tool"), "there is no contract %q: the read-back needs one of its own, with `host_only: true`", s.Tool)
	case target.Prefix() != c.Prefix():
		v.at(key("settle", "tool"), "%s belongs to another server: only the server that wrote can say what it wrote", s.Tool)
	case !target.HostOnly:
		v.at(key("settle", "tool"), "%s is not host-only: the Host calls the read-back itself, add `host_only: true` there", s.Tool)
	case target.Risk != agent.RiskRead && target.Risk != agent.RiskSettle:
		v.at(key("settle", "tool"), "%s has risk %s: a read-back has risk read or settle", s.Tool, target.Risk)
	case s.Voids && target.Risk != agent.RiskSettle:
		v.at(key("settle", "voids"), "%s has risk %s and voids nothing: remove `voids`, or say `risk: settle` there", s.Tool, target.Risk)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		v.argument(c, s.Args[name], true, "settle", "args", name)
	}
	if len(s.AppliedWhen) == 0 {
		v.at(key("settle"), "`settle` needs `applied_when`: what the read-back shows if the write took effect")
	}
	for _, name := range slices.Sorted(maps.Keys(s.AppliedWhen)) {
		m := s.AppliedWhen[name]
		switch {
		case (m.SHA256Of == "") == (m.Equals == ""):
			v.at(key("settle", "applied_when", name), "say either `sha256_of: ARGUMENT` or `equals: ARGUMENT`")
		default:
			v.argument(c, m.SHA256Of+m.Equals, false, "settle", "applied_when", name)
		}
	}
}

// argument checks a reference to an argument of the write.
func (v *validator) argument(c Contract, name string, grantToo bool, path ...string) {
	switch {
	case name == GrantArg && grantToo:
	case name == "" || strings.HasPrefix(name, "$"):
		v.at(path, "%q names no argument of the write%s", name, map[bool]string{true: ", nor " + GrantArg}[grantToo])
	case name == c.GrantField:
		v.at(path, "the grant is no argument of the write: write %s", GrantArg)
	}
}

// builtinTool holds what is known of our own servers' tools against the contract: no
// contract makes a read of what writes, or shows the model what is the Host's.
func (v *validator) builtinTool(c Contract) {
	server := v.servers[c.Prefix()]
	known, ok := builtinTools[server.Builtin][c.Remote()]
	if !ok {
		return
	}
	if c.Risk != known.risk && (known.risk.Writes() || c.Risk == agent.RiskSettle) {
		v.at(key("risk"), "%s of the builtin %s has risk %s", c.Remote(), server.Builtin, known.risk)
	}
	if known.hostOnly && !c.HostOnly {
		v.at(nil, "%s of the builtin %s is for the Host only: add `host_only: true`", c.Remote(), server.Builtin)
	}
	if known.grantField != c.GrantField && known.grantField != "" {
		v.at(nil, "%s of the builtin %s takes its grant in the argument %s: write `grant_field: %[3]s`",
			c.Remote(), server.Builtin, known.grantField)
	}
}

type builtinTool struct {
	risk       agent.Risk
	hostOnly   bool
	grantField string
}

var builtinTools = map[string]map[string]builtinTool{
	BuiltinDocs: {
		"search_documents": {risk: agent.RiskRead},
		"read_document":    {risk: agent.RiskRead},
		"save_report":      {risk: agent.RiskWrite, grantField: "grant"},
		"report_status":    {risk: agent.RiskRead, hostOnly: true},
		"settle_report":    {risk: agent.RiskSettle, hostOnly: true},
	},
	BuiltinCalc: {
		"add": {risk: agent.RiskRead},
	},
}
