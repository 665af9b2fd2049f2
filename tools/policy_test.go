package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
)

func docsServer() Server {
	return Server{Prefix: "docs", Builtin: BuiltinDocs, Root: "/desk", Scope: "desk/reading"}
}

func otherServer() Server { return Server{Prefix: "other", Command: []string{"node", "server.js"}} }

func saveContract() Contract {
	return Contract{
		Name: "docs__save_report", Owner: "research-desk", Risk: agent.RiskWrite, Result: ResultStatus,
		Approval:   &Approval{Approvers: 1, Expires: Duration(24 * time.Hour), UseWithin: Duration(10 * time.Minute)},
		SideEffect: "creates one new file under reports/", Rollback: "delete reports/{filename}", GrantField: "grant",
		Settle: &Settle{
			Tool: "docs__settle_report", Args: map[string]string{"filename": "filename", "grant": GrantArg},
			AppliedWhen: map[string]Match{"sha256": {SHA256Of: "content"}}, Voids: true,
		},
		Redact: []string{"content"},
	}
}

func settleContract() Contract {
	return Contract{
		Name: "docs__settle_report", Owner: "research-desk", Risk: agent.RiskSettle, HostOnly: true, Result: ResultStatus,
		SideEffect: "voids one candidate in the ledger",
	}
}

func otherWrite() Contract {
	c := Contract{
		Name: "other__write", Owner: "o", Risk: agent.RiskWrite, Approval: &Approval{}, SideEffect: "writes", Rollback: "undo by hand", Result: ResultStatus,
	}
	return c
}

func TestValidate_TheShippedFormPasses(t *testing.T) {
	problems := Validate([]Server{docsServer(), otherServer()}, []Contract{
		{Name: "docs__search_documents", Owner: "research-desk", Risk: agent.RiskRead, Result: ResultStatus},
		saveContract(), settleContract(), otherWrite(),
	})
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestValidate_Contracts(t *testing.T) {
	for name, c := range map[string]struct {
		contract func(*Contract)
		want     string // of the first problem, with its path; empty: none
	}{
		"no owner":             {func(c *Contract) { c.Owner = "" }, "tools.other__write: a write tool needs `owner`"},
		"no side effect":       {func(c *Contract) { c.SideEffect = "" }, "tools.other__write: a write tool needs `side_effect`"},
		"no approval":          {func(c *Contract) { c.Approval = nil }, "tools.other__write: a write tool needs `approval`, such as `approval: {approvers: 1}`"},
		"no rollback":          {func(c *Contract) { c.Rollback = "" }, "tools.other__write: a write tool needs `rollback`"},
		"rollback none":        {func(c *Contract) { c.Rollback = "none" }, "tools.other__write.rollback: a write tool needs `rollback`; \"none\" says nothing"},
		"rollback N / A":       {func(c *Contract) { c.Rollback = " N / A\n" }, "tools.other__write.rollback: a write tool needs `rollback`; \" N / A\\n\" says nothing"},
		"rollback NONE.":       {func(c *Contract) { c.Rollback = "NONE." }, "tools.other__write.rollback: a write tool needs `rollback`; \"NONE.\" says nothing"},
		"rollback of spaces":   {func(c *Contract) { c.Rollback = "  " }, "tools.other__write.rollback: a write tool needs `rollback`; \"  \" says nothing"},
		"side effect none":     {func(c *Contract) { c.SideEffect = "None" }, "tools.other__write.side_effect: a write tool needs `side_effect`; \"None\" says nothing"},
		"owner n/a":            {func(c *Contract) { c.Owner = "n/a" }, "tools.other__write.owner: a write tool needs `owner`; \"n/a\" says nothing"},
		"destructive by one":   {func(c *Contract) { c.Risk, c.Approval.Approvers = agent.RiskDestructive, 1 }, "tools.other__write.approval.approvers: a destructive tool needs at least 2 approvers"},
		"destructive by two":   {func(c *Contract) { c.Risk, c.Approval.Approvers = agent.RiskDestructive, 2 }, ""},
		"destructive, default": {func(c *Contract) { c.Risk = agent.RiskDestructive }, ""},
		"destructive, no rollback": {func(c *Contract) { c.Risk, c.Rollback = agent.RiskDestructive, "" },
			"tools.other__write: a destructive tool needs `rollback`"},
		"negative approvers": {func(c *Contract) { c.Approval.Approvers = -1 }, "tools.other__write.approval.approvers: a write tool needs at least 1 approvers"},
		"eight approvers":    {func(c *Contract) { c.Approval.Approvers = MaxApprovers }, ""},
		"nine approvers":     {func(c *Contract) { c.Approval.Approvers = MaxApprovers + 1 }, "tools.other__write.approval.approvers: at most 8 people sign for a call"},
		"a second":           {func(c *Contract) { c.Approval.UseWithin = Duration(time.Second) }, ""},
		"less":               {func(c *Contract) { c.Approval.UseWithin = Duration(time.Second - 1) }, "tools.other__write.approval.use_within: `use_within` is at least 1s and at most 8784h"},
		"a year":             {func(c *Contract) { c.Approval.Expires = Duration(MaxWait) }, ""},
		"more":               {func(c *Contract) { c.Approval.Expires = Duration(MaxWait + 1) }, "tools.other__write.approval.expires: `expires` is at least 1s and at most 8784h"},
		"host-only write":    {func(c *Contract) { c.HostOnly = true }, "tools.other__write.host_only: the Host itself calls no tool that writes: remove `host_only`"},
		"no risk":            {func(c *Contract) { c.Risk = "" }, "tools.other__write: the contract has no `risk`: it is read, write, destructive or settle"},
		"unknown risk":       {func(c *Contract) { c.Risk = "low" }, "tools.other__write.risk: there is no risk \"low\": it is read, write, destructive or settle"},
		"result as text":     {func(c *Contract) { c.Result = "text" }, "tools.other__write.result: `result` is status or absent, not \"text\""},
		"two shapes":         {func(c *Contract) { c.Output = OutputNone }, "tools.other__write.output: `result: status` is read from structured output: remove `output: none`"},
		"a short pin":        {func(c *Contract) { c.Pin = "abc" }, "tools.other__write.pin: a pin is the SHA-256 of the definition: 64 lower-case hex digits"},
		"widened by $ref":    {func(c *Contract) { c.Schema = []string{"const", "$ref"} }, "tools.other__write.schema.1: schema keyword \"$ref\" cannot be allowed: only format, const, minItems, maxItems, exclusiveMinimum, exclusiveMaximum can"},
		"unknown log":        {func(c *Contract) { c.Logs = []string{"secrets"} }, "tools.other__write.logs.0: there is no log field \"secrets\": there are correlation_id, sanitized_arguments, approval_decision, result_status, tool, server, mcp_request_id, model_call_id, class, reason, approver"},
		"send that sends not": {func(c *Contract) { c.Send = SendOn },
			"tools.other__write.send: `send: on` switches on a tool with `effect: send`; this is none"},
		"recipients of nothing": {func(c *Contract) { c.Recipients = []string{"to"} }, "tools.other__write.recipients: only a tool with `effect: send` has recipients"},
		"send":                  {func(c *Contract) { c.Effect, c.Recipients = EffectSend, []string{"to"} }, ""},
		"longest timeout":       {func(c *Contract) { c.Timeout = Duration(MaxTimeout) }, ""},
		"longer timeout":        {func(c *Contract) { c.Timeout = Duration(MaxTimeout + 1) }, "tools.other__write.timeout: a timeout is more than 0s and at most 10m0s"},
		"no prefix":             {func(c *Contract) { c.Name = "write" }, "tools.write: a tool is named by its server's prefix, two underscores and its own name, such as docs__read_document"},
		"unknown server":        {func(c *Contract) { c.Name = "odd__write" }, "tools.odd__write: there is no server \"odd\": `servers` has docs, other"},
		"no name":               {func(c *Contract) { c.Name = "other__" }, "tools.other__: the server's name of the tool must be visible text of 1 to 128 bytes"},
		"alias with a dot":      {func(c *Contract) { c.Name, c.Tool = "other__a.b", "a" }, "tools.other__a.b: with `tool:` the key is the name that the model sees: letters, digits, _ and -, at most 64 characters"},
		"settles itself":        {func(c *Contract) { c.Settle = &Settle{Tool: c.Name, AppliedWhen: match("a")} }, "tools.other__write.settle.tool: a tool does not settle itself"},
		"settled by nothing":    {func(c *Contract) { c.Settle = &Settle{Tool: "other__x", AppliedWhen: match("a")} }, "tools.other__write.settle.tool: there is no contract \"other__x\": the read-back needs one of its own, with `host_only: true`"},
		"settled elsewhere":     {func(c *Contract) { c.Settle = &Settle{Tool: "docs__settle_report", AppliedWhen: match("a")} }, "tools.other__write.settle.tool: docs__settle_report belongs to another server: only the server that wrote can say what it wrote"},
		"settled by the model's": {func(c *Contract) { c.Settle = &Settle{Tool: "other__read", AppliedWhen: match("a")} },
			"tools.other__write.settle.tool: other__read is not host-only: the Host calls the read-back itself, add `host_only: true` there"},
		"settled by the Host's": {func(c *Contract) { c.Settle = &Settle{Tool: "other__peek", AppliedWhen: match("a")} }, ""},
		"voided by a read": {func(c *Contract) { c.Settle = &Settle{Tool: "other__peek", AppliedWhen: match("a"), Voids: true} },
			"tools.other__write.settle.voids: other__peek has risk read and voids nothing: remove `voids`, or say `risk: settle` there"},
		"applied never": {func(c *Contract) { c.Settle = &Settle{Tool: "other__peek"} }, "tools.other__write.settle: `settle` needs `applied_when`: what the read-back shows if the write took effect"},
		"applied twofold": {func(c *Contract) {
			c.Settle = &Settle{Tool: "other__peek", AppliedWhen: map[string]Match{"f": {"a", "b"}}}
		}, "tools.other__write.settle.applied_when.f: say either `sha256_of: ARGUMENT` or `equals: ARGUMENT`"},
		"applied by grant": {func(c *Contract) { c.Settle = &Settle{Tool: "other__peek", AppliedWhen: match(GrantArg)} }, "tools.other__write.settle.applied_when.f: \"$grant\" names no argument of the write"},
		"a variable": {func(c *Contract) {
			c.Settle = &Settle{Tool: "other__peek", AppliedWhen: match("a"), Args: map[string]string{"x": "$run"}}
		}, "tools.other__write.settle.args.x: \"$run\" names no argument of the write, nor $grant"},
		"the grant by name": {func(c *Contract) {
			c.GrantField = "g"
			c.Settle = &Settle{Tool: "other__peek", AppliedWhen: match("a"), Args: map[string]string{"x": "g"}}
		}, "tools.other__write.settle.args.x: the grant is no argument of the write: write $grant"},
	} {
		t.Run(name, func(t *testing.T) {
			write := otherWrite()
			c.contract(&write)
			checkFirst(t, Validate([]Server{docsServer(), otherServer()}, []Contract{
				write, settleContract(),
				{Name: "other__read", Owner: "o", Risk: agent.RiskRead},
				{Name: "other__peek", Owner: "o", Risk: agent.RiskRead, HostOnly: true},
			}), c.want)
		})
	}
}

func match(argument string) map[string]Match { return map[string]Match{"f": {Equals: argument}} }

func checkFirst(t *testing.T, problems []Problem, want string) {
	t.Helper()
	got := ""
	if len(problems) > 0 {
		got = problems[0].Error()
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestValidate_ReadAndSettleContracts(t *testing.T) {
	for name, c := range map[string]struct {
		contract Contract
		want     string
	}{
		"a read":              {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead}, ""},
		"a sensitive read":    {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead, Approval: &Approval{}}, ""},
		"without owner":       {Contract{Name: "other__r", Risk: agent.RiskRead}, "tools.other__r: a read tool needs `owner`"},
		"that sends":          {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead, Effect: EffectSend}, "tools.other__r.effect: what sends something out is no read: say `risk: write`"},
		"with settle":         {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead, Settle: &Settle{}}, "tools.other__r.settle: a read has nothing to settle: remove `settle`, or say `risk: write`"},
		"with rollback":       {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead, Rollback: "undo"}, "tools.other__r.rollback: a read has nothing to roll back: remove `rollback`, or say `risk: write`"},
		"with rollback none":  {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead, Rollback: "none"}, ""},
		"with a grant":        {Contract{Name: "other__r", Owner: "o", Risk: agent.RiskRead, GrantField: "g"}, "tools.other__r.grant_field: no grant is made for a read without `approval`"},
		"the save as a read":  {Contract{Name: "docs__save_report", Owner: "o", Risk: agent.RiskRead, GrantField: "grant", Approval: &Approval{}}, "tools.docs__save_report.risk: save_report of the builtin docs has risk write"},
		"under another name":  {Contract{Name: "docs__look", Tool: "save_report", Owner: "o", Risk: agent.RiskRead, GrantField: "grant", Approval: &Approval{}}, "tools.docs__look.risk: save_report of the builtin docs has risk write"},
		"settling as a read":  {Contract{Name: "docs__settle_report", Owner: "o", Risk: agent.RiskRead, HostOnly: true}, "tools.docs__settle_report.risk: settle_report of the builtin docs has risk settle"},
		"a status shown":      {Contract{Name: "docs__report_status", Owner: "o", Risk: agent.RiskRead}, "tools.docs__report_status: report_status of the builtin docs is for the Host only: add `host_only: true`"},
		"a search that voids": {Contract{Name: "docs__search_documents", Owner: "o", Risk: agent.RiskSettle, HostOnly: true, SideEffect: "voids"}, "tools.docs__search_documents.risk: search_documents of the builtin docs has risk read"},
		"a read as a write":   {Contract{Name: "docs__search_documents", Owner: "o", Risk: agent.RiskWrite, SideEffect: "s", Rollback: "r", Approval: &Approval{}}, ""},
		"save without grant":  {Contract{Name: "docs__save_report", Owner: "o", Risk: agent.RiskWrite, SideEffect: "s", Rollback: "r", Approval: &Approval{}}, "tools.docs__save_report: save_report of the builtin docs takes its grant in the argument grant: write `grant_field: grant`"},
		"settle shown":        {Contract{Name: "other__s", Owner: "o", Risk: agent.RiskSettle, SideEffect: "voids"}, "tools.other__s: a settle tool is for the Host only: add `host_only: true`"},
		"settle, no effect":   {Contract{Name: "other__s", Owner: "o", Risk: agent.RiskSettle, HostOnly: true}, "tools.other__s: a settle tool needs `side_effect`"},
		"settle, no owner":    {Contract{Name: "other__s", SideEffect: "voids", Risk: agent.RiskSettle, HostOnly: true}, "tools.other__s: a settle tool needs `owner`"},
		"settle, approval":    {Contract{Name: "other__s", Owner: "o", SideEffect: "voids", Risk: agent.RiskSettle, HostOnly: true, Approval: &Approval{}}, "tools.other__s.approval: approval does not apply to a settle tool: remove it"},
		"settle":              {Contract{Name: "other__s", Owner: "o", SideEffect: "voids", Risk: agent.RiskSettle, HostOnly: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			checkFirst(t, Validate([]Server{docsServer(), otherServer()}, []Contract{c.contract}), c.want)
		})
	}
}

func TestValidate_TwoContractsForOneTool(t *testing.T) {
	write := otherWrite()
	read := Contract{Name: "other__look", Tool: "write", Owner: "o", Risk: agent.RiskRead}
	checkFirst(t, Validate([]Server{otherServer()}, []Contract{write, read}),
		"tools.other__look: the tool has a contract already, other__write: one tool, one contract")
	checkFirst(t, Validate([]Server{otherServer()}, []Contract{write, write}),
		`tools.other__write: two contracts have the name "other__write"`)
	dotted := Contract{Name: "other__a.b", Owner: "o", Risk: agent.RiskRead}
	taken := Contract{Name: Alias("other", "a.b"), Tool: "c", Owner: "o", Risk: agent.RiskRead}
	checkFirst(t, Validate([]Server{otherServer()}, []Contract{dotted, taken}),
		"tools."+taken.Name+": its alias "+taken.Name+" is that of other__a.b too: choose another key and name the server's tool in `tool:`")
}

func TestValidate_Servers(t *testing.T) {
	for name, c := range map[string]struct {
		server Server
		want   string
	}{
		"neither":           {Server{Prefix: "a"}, "servers.a: the server has neither `builtin: docs` or `builtin: calc` nor a `command: [program, argument…]`"},
		"both":              {Server{Prefix: "a", Builtin: "calc", Command: []string{"x"}}, "servers.a.command: a server is a builtin or a command, not both"},
		"unknown builtin":   {Server{Prefix: "a", Builtin: "mail"}, `servers.a.builtin: there is no builtin "mail": it is docs or calc`},
		"docs, no root":     {Server{Prefix: "a", Builtin: "docs", Scope: "s"}, "servers.a: the builtin docs needs a `root`: the folder that holds sources/ and reports/"},
		"docs, no scope":    {Server{Prefix: "a", Builtin: "docs", Root: "/r"}, "servers.a: the builtin docs needs a `scope`: the name that grants are bound to, such as desk/reading"},
		"calc":              {Server{Prefix: "a", Builtin: "calc"}, ""},
		"calc with files":   {Server{Prefix: "a", Builtin: "calc", Root: "/r"}, "servers.a.root: the builtin calc has no files: remove `root`"},
		"builtin with env":  {Server{Prefix: "a", Builtin: "calc", Env: []string{"X"}}, "servers.a.env: a builtin reads no environment: remove `env`"},
		"command with root": {Server{Prefix: "a", Command: []string{"x"}, Root: "/r"}, "servers.a.root: only the builtin docs has a `root`: pass folders to other servers in `command`"},
		"env with a value":  {Server{Prefix: "a", Command: []string{"x"}, Env: []string{"A=1"}}, `servers.a.env.0: "A=1" is no name of a variable: list names only, the values come from your environment`},
		"env twice":         {Server{Prefix: "a", Command: []string{"x"}, Env: []string{"A", "A"}}, `servers.a.env.1: variable "A" is listed twice`},
		"empty program":     {Server{Prefix: "a", Command: []string{""}}, "servers.a.command: the command needs a program, and no part of it may hold a NUL character"},
		"protocol by name":  {Server{Prefix: "a", Builtin: "calc", Protocol: "latest"}, `servers.a.protocol: "latest" is no protocol version: write a date such as 2026-07-28`},
		"two ways to pin":   {Server{Prefix: "a", Builtin: "calc", Protocol: "2025-11-25", Protocols: []string{"2025-11-25"}}, "servers.a.protocols: `protocol` pins one version and `protocols` lists several: keep one of them"},
		"1024 tools":        {Server{Prefix: "a", Builtin: "calc", MaxTools: 1024}, ""},
		"1025 tools":        {Server{Prefix: "a", Builtin: "calc", MaxTools: 1025}, "servers.a.max_tools: max_tools is between 1 and 1024"},
		"scope of 256":      {Server{Prefix: "a", Builtin: "calc", Scope: strings.Repeat("s", 256)}, ""},
		"scope of 257":      {Server{Prefix: "a", Builtin: "calc", Scope: strings.Repeat("s", 257)}, "servers.a.scope: a scope is visible text of at most 256 bytes"},
		"scope that hides":  {Server{Prefix: "a", Builtin: "calc", Scope: "a\u202eb"}, "servers.a.scope: a scope is visible text of at most 256 bytes"},
		"the Host's prefix": {Server{Prefix: "host", Builtin: "calc"}, `servers.host: prefix "host" belongs to the Host: choose another`},
		"16 characters":     {Server{Prefix: "abcdefghijklmno1", Builtin: "calc"}, ""},
		"17 characters":     {Server{Prefix: "abcdefghijklmno12", Builtin: "calc"}, `servers.abcdefghijklmno12: prefix "abcdefghijklmno12": a prefix is a lower-case letter and up to 15 lower-case letters or digits`},
		"upper case":        {Server{Prefix: "Docs", Builtin: "calc"}, `servers.Docs: prefix "Docs": a prefix is a lower-case letter and up to 15 lower-case letters or digits`},
		"a digit first":     {Server{Prefix: "1a", Builtin: "calc"}, `servers.1a: prefix "1a": a prefix is a lower-case letter and up to 15 lower-case letters or digits`},
		"an underscore":     {Server{Prefix: "a_b", Builtin: "calc"}, `servers.a_b: prefix "a_b": a prefix is a lower-case letter and up to 15 lower-case letters or digits`},
		"nothing":           {Server{Builtin: "calc"}, `servers.: prefix "": a prefix is a lower-case letter and up to 15 lower-case letters or digits`},
	} {
		t.Run(name, func(t *testing.T) { checkFirst(t, Validate([]Server{c.server}, nil), c.want) })
	}
	checkFirst(t, Validate([]Server{docsServer(), docsServer()}, nil), `servers.docs: two servers have the prefix "docs": prefixes are unique`)
}

func TestWarnings(t *testing.T) {
	silent := otherWrite()
	silent.Result = ""
	mail := otherWrite()
	mail.Name, mail.Effect = "other__mail", EffectSend
	on := mail
	on.Name, on.Send = "other__on", SendOn
	got := Warnings([]Contract{silent, mail, on, saveContract(), {Name: "other__r", Risk: agent.RiskRead}})
	if len(got) != 2 || got[0].Path[1] != "other__write" || got[1].Path[1] != "other__mail" {
		t.Errorf("warnings %v", got)
	}
	if mail.Exposed() || !on.Exposed() || settleContract().Exposed() {
		t.Error("a send tool is exposed exactly if it is switched on, a host-only one never")
	}
}

func TestContract_Defaults(t *testing.T) {
	c := otherWrite()
	if c.Approvers() != 1 || c.Expires() != 24*time.Hour || c.UseWithin() != 10*time.Minute {
		t.Errorf("write: %d, %s, %s", c.Approvers(), c.Expires(), c.UseWithin())
	}
	c.Risk = agent.RiskDestructive
	if c.Approvers() != 2 {
		t.Errorf("destructive: %d approvers", c.Approvers())
	}
	c.Approval = nil
	if c.Approvers() != 2 {
		t.Errorf("destructive without approval: %d approvers", c.Approvers())
	}
	read := Contract{Risk: agent.RiskRead}
	if read.Approvers() != 0 || settleContract().Approvers() != 0 {
		t.Error("a read or settle tool needs signatures by default")
	}
	read.Approval = &Approval{}
	if read.Approvers() != 1 {
		t.Errorf("sensitive read: %d approvers", read.Approvers())
	}
	if got := (Contract{Logs: []string{"class", "result_status"}}).Logged(); !slices.Equal(got, append(slices.Clone(AlwaysLogged), "class")) {
		t.Errorf("logged %v", got)
	}
}

func TestAlias(t *testing.T) {
	long := strings.Repeat("x", 58)
	for remote, want := range map[string]string{
		"read_file":             "docs__read_file",
		"Read-File9":            "docs__Read-File9",
		long:                    "docs__" + long, // 64 characters
		"docs__search":          "docs__docs__search",
		"files/read.text":       "docs__files_read_text_",
		long + "y":              "docs__" + strings.Repeat("x", 49) + "_",
		"読む":                    "docs____",
		strings.Repeat("/", 90): "docs__" + strings.Repeat("_", 49) + "_",
	} {
		got := Alias("docs", remote)
		if !strings.HasPrefix(got, want) || !isAlias(got) || len(got) > MaxName {
			t.Errorf("alias of %q is %q, want %q…", remote, got, want)
		}
		if got != Alias("docs", remote) {
			t.Errorf("alias of %q is not stable", remote)
		}
	}
	seen := map[string]string{}
	for _, remote := range []string{"a.b", "a/b", "a_b", "a b", "a:b", long + "1", long + "2", long + ".1", "a.b_"} {
		if other, taken := seen[Alias("docs", remote)]; taken {
			t.Errorf("%q and %q share an alias", remote, other)
		}
		seen[Alias("docs", remote)] = remote
	}
}

func TestResolve_RenamesAndFollowsReferences(t *testing.T) {
	write, back := otherWrite(), Contract{Name: "other__files/status", Owner: "o", Risk: agent.RiskRead, HostOnly: true}
	write.Name, write.Settle = "other__files/write", &Settle{Tool: back.Name, AppliedWhen: match("a")}
	given := []Contract{write, back}
	if problems := Validate([]Server{otherServer()}, given); len(problems) > 0 {
		t.Fatal(problems)
	}
	got := Resolve(given)
	if got[0].Remote() != "files/write" || got[1].Remote() != "files/status" || got[0].Settle.Tool != got[1].Name || !isAlias(got[0].Name) {
		t.Errorf("resolved %+v", got)
	}
	if given[0].Settle.Tool != back.Name || given[0].Name != "other__files/write" {
		t.Error("Resolve wrote to what it was given")
	}
	if problems := Validate([]Server{otherServer()}, got); len(problems) > 0 {
		t.Errorf("resolved contracts: %v", problems)
	}
	if again := Resolve(got); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Error("resolving twice changes something")
	}
}

func TestRegistry(t *testing.T) {
	r, err := NewRegistry([]Server{docsServer()}, []Contract{saveContract(), settleContract()})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := r.Contract("docs__save_report"); !ok || c.Remote() != "save_report" {
		t.Errorf("contract %+v", c)
	}
	for _, name := range []string{"save_report", "docs__save_Report", "docs_save_report", "host__x", ""} {
		if _, ok := r.Contract(name); ok {
			t.Errorf("%q is registered", name)
		}
	}
	if _, ok := r.Server("docs"); !ok || len(r.Servers()) != 1 || len(r.Contracts()) != 2 {
		t.Error("the server is not registered")
	}
	if _, ok := r.Server("other"); ok {
		t.Error("another server is registered")
	}
	if _, err := NewRegistry([]Server{docsServer(), docsServer()}, nil); err == nil {
		t.Error("a prefix is taken twice")
	}
}

func TestCheckExposed(t *testing.T) {
	for name, c := range map[string]struct {
		tools []ModelTool
		want  string
	}{
		"distinct":            {[]ModelTool{{Name: "a__read", Description: "Reads."}, {Name: "a__write", Description: "Writes."}}, ""},
		"case":                {[]ModelTool{{Name: "a__read_file", Description: "1."}, {Name: "a__readFile", Description: "2."}}, "tools.a__readFile: the name differs from a__read_file only in case or separators: give one of them another alias (key and `tool:`)"},
		"separators":          {[]ModelTool{{Name: "a__read-file", Description: "1."}, {Name: "a__read_file", Description: "2."}}, "tools.a__read_file: the name differs from a__read-file only in case or separators: give one of them another alias (key and `tool:`)"},
		"same description":    {[]ModelTool{{Name: "a__x", Description: "Reads a file."}, {Name: "b__y", Description: " reads a\nfile. "}}, "tools.b__y: the description is the same as that of a__x: write another in `description:`"},
		"no description":      {[]ModelTool{{Name: "a__x", Description: " \n"}}, "tools.a__x: the tool has no description: write one or two sentences in `description:`"},
		"two servers' search": {[]ModelTool{{Name: "a__search", Description: "1."}, {Name: "b__search", Description: "2."}}, ""},
	} {
		t.Run(name, func(t *testing.T) { checkFirst(t, CheckExposed(c.tools), c.want) })
	}
}
