package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// environment is one that holds just these variables.
func environment(variables map[string]string) Getenv {
	return func(name string) string { return variables[name] }
}

func userOf(t *testing.T, text string) *User {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, UserFile), text)
	u, err := LoadUser(dir)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Where documents may be sent, and with which key, follows from the user's own file
// and environment alone.
func TestAdmit_OnlyWhatTheUserNamesAndTheKeyThatIsForIt(t *testing.T) {
	const listed = "endpoints: [https://llm.example.org/v1/, {url: \"http://gpu.lan:8000/v1\"}, {url: https://keyed.example.org, key_env: KEYED}]\n"
	own := "model: {openai: {model: m, base_url: https://own.example.org/v1, key_env: OWN}}\n"
	plain := "model: {openai: {model: m, base_url: \"http://own.lan/v1\"}}\n"
	for name, row := range map[string]struct {
		user string
		base string // OPENAI_BASE_URL
		ask  string
		key  string // as ENV, or "none", or part of the refusal
	}{
		"the default":                        {"state: s\n", "", DefaultBaseURL, "OPENAI_API_KEY"},
		"the default, written otherwise":     {"state: s\n", "", "https://API.OpenAI.com:443/v1/", "OPENAI_API_KEY"},
		"the endpoint of the environment":    {"state: s\n", "https://corp.example.org/v1", "https://corp.example.org/v1", "OPENAI_API_KEY"},
		"the default while another is named": {"state: s\n", "https://corp.example.org/v1", DefaultBaseURL, "OPENAI_BASE_URL names another endpoint"},
		"one that only a project names":      {"state: s\n", "", "https://evil.example.org/v1", "only a project's file names this endpoint"},
		"one that begins like the default":   {"state: s\n", "", "https://api.openai.com.evil.example.org/v1", "only a project's file"},
		"another path of a listed one":       {listed, "", "https://llm.example.org/v2", "only a project's file"},
		"a path below a listed one":          {listed, "", "https://llm.example.org/v1/files", "only a project's file"},
		"another port of a listed one":       {listed, "", "https://llm.example.org:8443/v1", "only a project's file"},
		"a listed one gets no key":           {listed, "", "https://llm.example.org/v1", "none"},
		"a listed one gets its key":          {listed, "", "https://keyed.example.org", "KEYED"},
		"a listed one without encryption":    {listed, "", "http://gpu.lan:8000/v1", "none"},
		"one without encryption":             {listed, "", "http://gpu.lan:8001/v1", "without encryption"},
		"encryption dropped":                 {listed, "", "http://llm.example.org/v1", "without encryption"},
		"the environment's, unencrypted":     {"state: s\n", "http://corp.example.org/v1", "http://corp.example.org/v1", "without encryption"},
		"this machine gets no key":           {"state: s\n", "", "http://localhost:11434/v1", "none"},
		"this machine, by number":            {"state: s\n", "", "http://127.8.9.1:1/v1", "none"},
		"this machine, by IPv6":              {"state: s\n", "", "http://[::1]:1/v1", "none"},
		"this machine, from environment":     {"state: s\n", "http://localhost:1/v1", "http://localhost:1/v1", "OPENAI_API_KEY"},
		"not quite this machine":             {"state: s\n", "", "http://localhost.example.org/v1", "without encryption"},
		"all interfaces":                     {"state: s\n", "", "http://0.0.0.0:1/v1", "without encryption"},
		"the user's own model":               {own, "", "https://own.example.org/v1", "OWN"},
		"the user's own, elsewhere":          {own, "", "https://own.example.org/v2", "only a project's file"},
		"the default beside the user's own":  {own, "", DefaultBaseURL, "OPENAI_API_KEY"},
		"the user's own, unencrypted":        {plain, "", "http://own.lan/v1", "without encryption"},
		"the user's own, listed":             {plain + "endpoints: [\"http://own.lan/v1\"]\n", "", "http://own.lan/v1", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := parseURL(row.ask)
			if err != nil {
				t.Fatal(err)
			}
			key, err := userOf(t, row.user).Admit(base, environment(map[string]string{EnvBaseURL: row.base}))
			got := key.Env
			if got == "" {
				got = "none"
			}
			if refused := new(Refused); errors.As(err, &refused) {
				got = err.Error()
				if refused.Remedy == "" || refused.URL != base || key.said() {
					t.Errorf("%+v, key %+v", refused, key)
				}
				if !strings.Contains(got, row.key) {
					t.Errorf("got %q, want %q", got, row.key)
				}
				return
			}
			if got != row.key || err != nil {
				t.Errorf("got key %q, %v; want %q", got, err, row.key)
			}
		})
	}
}

func TestParseURL_RefusesWhatCouldMeanSomethingElse(t *testing.T) {
	for _, text := range []string{
		"", "api.openai.com/v1", "ftp://x", "https://", "https:///v1", "https://a:b@x/v1", "https://a@x/v1", "https://x/v1?k=v", "https://x/v1?", "https://x/v1#f",
		"https://x/v1#", "https://x/../v1", "https://x//v1", "https://x/%2e%2e/v1", "https://x/a%2fb", "https://x\\@y/v1", "https://x y", "https://ехаmple.org/v1",
		"https://[fe80::1%25lo]/v1", "https://x:port/v1", "https://x/\u202ev1", "https://x/" + strings.Repeat("a", MaxURL-len("https://x/")+1),
	} {
		if got, err := parseURL(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		} else if strings.Contains(err.Error(), "a:b") {
			t.Errorf("%q repeats a password", err)
		}
	}
	for text, want := range map[string]string{
		"HTTPS://X.Example.org:443/v1///": "https://x.example.org/v1", "http://LOCALHOST:80": "http://localhost", "https://x:8443/V1": "https://x:8443/V1",
		"http://[::1]:9/v1": "http://[::1]:9/v1", "https://x/" + strings.Repeat("a", MaxURL-len("https://x/")): "https://x/" + strings.Repeat("a", MaxURL-len("https://x/")),
	} {
		if got, err := parseURL(text); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestResolve_FileThenEnvironmentThenDefault(t *testing.T) {
	env := environment(map[string]string{EnvModel: "from-env", EnvBaseURL: "http://localhost:1/v1"})
	for name, row := range map[string]struct {
		o    OpenAI
		flag string
		env  Getenv
		want string
	}{
		"nothing but the environment": {OpenAI{}, "", env, "openai:from-env@localhost:1"},
		"the file":                    {OpenAI{Model: "own", BaseURL: "https://x.example.org/v1"}, "", env, "openai:own@x.example.org"},
		"the flag":                    {OpenAI{Model: "own"}, "flag", env, "openai:flag@localhost:1"},
		"the default":                 {OpenAI{Model: "own"}, "", environment(nil), "openai:own@api.openai.com"},
	} {
		got, err := row.o.Resolve(row.flag, row.env)
		if err != nil || got.Label() != row.want {
			t.Errorf("%s: %s, %v; want %s", name, got.Label(), err, row.want)
		}
	}
	if _, err := (&OpenAI{}).Resolve("", environment(nil)); err == nil || !strings.Contains(err.Error(), "SALLYPORT_MODEL") {
		t.Errorf("without a name: %v", err)
	}
	if _, err := (&OpenAI{Model: "m"}).Resolve("", environment(map[string]string{EnvBaseURL: "https://me:secret@x"})); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a password in the environment: %v", err)
	}
	if _, err := (&OpenAI{}).Resolve("a b", environment(nil)); err == nil {
		t.Error("a name with a blank is taken")
	}
}

// The names of models are bounded: 200 bytes pass, 201 do not.
func TestModelName_Limit(t *testing.T) {
	if why := badName(strings.Repeat("m", MaxModelName)); why != "" {
		t.Error(why)
	}
	if badName(strings.Repeat("m", MaxModelName+1)) == "" {
		t.Error("a name of 201 bytes is taken")
	}
}

// A key is read when it is needed, from a private file or a variable, and no error
// holds any of it.
func TestKey_Read(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "sk-secret\n", 0o600)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	env := environment(map[string]string{
		"K": " sk-secret ", "EMPTY": "", "TWO": "sk-secret sk-secret", "LINE": "sk-secret\r\nX-Evil: 1",
		"MOST": strings.Repeat("k", MaxKey), "OVER": strings.Repeat("k", MaxKey+1),
	})
	for name, row := range map[string]struct {
		key  Key
		want string
		err  string
	}{
		"none":                {Key{}, "", ""},
		"a variable":          {Key{Env: "K"}, "sk-secret", ""},
		"a file":              {Key{File: good, Needed: true}, "sk-secret", ""},
		"unset, not needed":   {Key{Env: "EMPTY"}, "", ""},
		"unset":               {Key{Env: "EMPTY", Needed: true}, "", "the variable EMPTY is empty"},
		"two words":           {Key{Env: "TWO"}, "", "more than one word"},
		"two lines":           {Key{Env: "LINE"}, "", "more than one word"},
		"the largest":         {Key{Env: "MOST"}, strings.Repeat("k", MaxKey), ""},
		"too large":           {Key{Env: "OVER"}, "", "more than 4096 bytes"},
		"readable by a group": {Key{File: file("group", "sk-secret", 0o640)}, "", "wider than 0600"},
		"readable by all":     {Key{File: file("all", "sk-secret", 0o604)}, "", "wider than 0600"},
		"a link":              {Key{File: link}, "", "symbolic link"},
		"no file":             {Key{File: filepath.Join(dir, "absent")}, "", "no such file"},
		"an empty file":       {Key{File: file("empty", "\n", 0o600)}, "", "is empty"},
		"a file too large":    {Key{File: file("large", strings.Repeat("k", MaxKey+1), 0o600)}, "", "larger than 4096 bytes"},
	} {
		got, err := row.key.Read(env)
		switch {
		case row.err == "" && (err != nil || got != row.want):
			t.Errorf("%s: %v", name, err)
		case row.err != "" && (!errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), row.err) || got != ""):
			t.Errorf("%s: %q, %v; want %q", name, got, err, row.err)
		case err != nil && strings.Contains(err.Error(), "sk-"):
			t.Errorf("%s: %v holds the key", name, err)
		}
	}
}

func TestUser_EndpointsNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"endpoints: [https://x/v1, https://X/v1/]\n":                          "config.yaml:1:27: endpoints.1: this endpoint is listed already",
		"endpoints:\n  - https://a:hunter2@x/v1\n":                            "config.yaml:2:5: endpoints.0.url: a base URL holds no user",
		"endpoints:\n  - {url: https://x, key_env: sk-hunter2}\n":             "config.yaml:2:31: endpoints.0.key_env: write the name of an environment variable",
		"endpoints:\n  - {url: https://x, key_env: A, key_file: b}\n":         "endpoints.0.key_file: a key is in a variable or in a file",
		"endpoints:\n  - {key_env: A}\n":                                      "the key `url` is missing",
		"endpoints: [{url: https://x, key: sk}]\n":                            "unknown key \"key\"",
		"model: {openai: {model: m, key_env: A, key_file: b}}\n":              "model.openai.key_file: a key is in a variable or in a file",
		"model: {openai: m, replay: c.jsonl}\nendpoints: [https://x:99/v1]\n": "model: one model answers",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, UserFile), text)
		_, err := LoadUser(dir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
	u := userOf(t, "endpoints: [{url: https://x, key_file: keys/x.key}]\n")
	if got := u.Endpoints[0].KeyFile; got != filepath.Join(filepath.Dir(u.Path), "keys/x.key") {
		t.Errorf("the key's file is %q", got)
	}
}

func TestAmount_IsExact(t *testing.T) {
	for text, want := range map[string]Amount{
		"0": 0, "3": 3_000_000, "0.075": 75_000, "0.000001": 1, "1000000": MaxAmount, "0.10": 100_000, "007": 7_000_000,
	} {
		var a Amount
		if err := a.UnmarshalText([]byte(text)); err != nil || a != want {
			t.Errorf("%q: %d, %v; want %d", text, a, err, want)
		}
	}
	for _, text := range []string{"", ".5", "5.", "-1", "+1", "1e3", "0.0000001", "1000000.000001", "1_000", "0x10", "1,5", "NaN", " 1", "99999999999999999999"} {
		var a Amount
		if err := a.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %d", text, a)
		}
	}
	for a, want := range map[Amount]string{0: "0", 1: "0.000001", 75_000: "0.075", 3_000_000: "3", MaxAmount: "1000000", 1_500_000: "1.5", 10_000_000: "10"} {
		if a.String() != want {
			t.Errorf("%d is shown as %q, want %q", int64(a), a, want)
		}
	}
}

func TestModel_OverCompletesPartByPart(t *testing.T) {
	yes, n := true, int64(20_000)
	base := Model{OpenAI: &OpenAI{Model: "base"}, Context: &Context{Bytes: &n}, OpenBody: &yes, own: true}
	got := Model{Script: &Script{File: "s"}}.Over(base)
	if got.Kind() != KindScript || got.OpenAI != nil || got.own || got.Context != base.Context || got.OpenBody != base.OpenBody {
		t.Errorf("%+v", got)
	}
	if got = (Model{Context: &Context{}}).Over(base); got.OpenAI != base.OpenAI || !got.own || got.Context == base.Context {
		t.Errorf("%+v", got)
	}
}

// A limit of cost is lowered by a project and raised by nobody but the user, like the
// others; where the user sets none there is none.
func TestBudgets_CostHasTheUsersCeiling(t *testing.T) {
	for _, row := range []struct {
		user, project string
		want          int64
	}{
		{"", "", 0}, {"", "2.5", 2_500_000}, {"2.5", "", 2_500_000}, {"2.5", "2.5", 2_500_000}, {"2.5", "0.000001", 1},
		{"2.5", "2.500001", -1},
	} {
		user, project := "state: s\n", calc
		if row.user != "" {
			user = "budgets: {cost: " + row.user + "}\n"
		}
		if row.project != "" {
			project += "budgets: {cost: " + row.project + "}\n"
		}
		c, err := load(t, project, user)
		switch {
		case row.want < 0:
			if err == nil || !strings.Contains(err.Error(), "sallyport.yaml:2:17: budgets.cost: 2.500001 is more than the 2.5 that are allowed") {
				t.Errorf("%+v: %v", row, err)
			}
		case err != nil || c.Budget.Cost != row.want:
			t.Errorf("%+v: %+v, %v", row, c, err)
		}
	}
}

func TestPrices_CachedTokensCostAsInputUnlessSaid(t *testing.T) {
	in, cached, out := Amount(3), Amount(1), Amount(5)
	p := &Prices{Currency: "EUR", Input: &in, Output: &out}
	if got := *p.Pinned(); got.Cached != 3 || got.Input != 3 || got.Output != 5 || got.Currency != "EUR" {
		t.Errorf("%+v", got)
	}
	p.Cached = &cached
	if got := *p.Pinned(); got.Cached != 1 {
		t.Errorf("%+v", got)
	}
	if (*Prices)(nil).Pinned() != nil {
		t.Error("no prices are some")
	}
}

// What the environment said when a run began is said again where it is missing.
func TestReach_TellsWhatTheRunWasBegunWith(t *testing.T) {
	const remote, local = "https://llm.example.org/v1", "http://127.0.0.1:9/v1"
	for name, row := range map[string]struct {
		e    Endpoint
		env  map[string]string
		want string
	}{
		"as it was":         {Endpoint{BaseURL: remote, Surroundings: true, Keyed: true}, map[string]string{EnvBaseURL: remote, EnvKey: "sk-x"}, ""},
		"another shell":     {Endpoint{BaseURL: remote, Surroundings: true, Keyed: true}, nil, "the run was begun with OPENAI_BASE_URL=" + remote},
		"another address":   {Endpoint{BaseURL: remote, Surroundings: true}, map[string]string{EnvBaseURL: local}, "set it again, or list"},
		"without its key":   {Endpoint{BaseURL: remote, Surroundings: true, Keyed: true}, map[string]string{EnvBaseURL: remote}, "and a key, and here there is none"},
		"never had one":     {Endpoint{BaseURL: local, Surroundings: true}, nil, ""},
		"local, with a key": {Endpoint{BaseURL: local, Surroundings: true, Keyed: true}, map[string]string{EnvKey: "sk-x"}, "and a key, and here there is none"},
		"by a file":         {Endpoint{BaseURL: local, Keyed: true}, nil, "the run was begun with a key for " + local},
		"by a project":      {Endpoint{BaseURL: remote}, nil, "only a project's file names this endpoint"},
		"unencrypted":       {Endpoint{BaseURL: "http://192.0.2.1", Surroundings: true}, nil, "without encryption"},
	} {
		_, err := (&User{}).Reach(row.e, func(n string) string { return row.env[n] })
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that was written into a file is not shown with the line that is wrong for it.
func TestLoad_AKeyInAFileIsNotShown(t *testing.T) {
	const secret = "sk-f3a1c0ffee5ec2e7"
	for name, text := range map[string]string{
		"api_key":         "model:\n  openai:\n    model: m\n    api_key: " + secret + "\n",
		"key":             "model: {openai: {model: m, key: " + secret + "}}\n",
		"beside":          "model: {openai: {model: m, kee: " + secret + ", timeout: x}}\n",
		"of the model":    "model: {api_key: " + secret + "}\n",
		"at the top":      "OPENAI_API_KEY: " + secret + "\n",
		"of a variable":   "model: {openai: {model: m, key_env: " + secret + "}}\n",
		"a list":          "model: {openai: {model: m, key_env: [" + secret + "]}}\n",
		"of an endpoint":  "endpoints: [{url: \"https://a.example\", api_key: " + secret + "}]\n",
		"endpoint, other": "endpoints: [{url: \"https://a.example\", x: " + secret + "}]\n",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, UserFile), text)
		if _, err := LoadUser(dir); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "line not shown") {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(text, "api_key") && !strings.Contains(err.Error(), "key_env: VARIABLE or key_file: FILE") {
			t.Errorf("%s: no advice: %v", name, err)
		}
		if strings.HasPrefix(text, "model") {
			if _, err := Parse("sallyport.yaml", []byte(text)); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s, in a project: %v", name, err)
			}
		}
	}
}

// A project passes the key of a model on to no server.
func TestLoad_NoServerGetsTheKeyOfAModel(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, UserFile), "model: {openai: {model: m, key_env: OWN_KEY}}\nendpoints: [{url: \"https://a.example\", key_env: ENDPOINT_KEY}]\n")
	project := filepath.Join(t.TempDir(), FileName)
	for name, refused := range map[string]bool{EnvKey: true, "OWN_KEY": true, "ENDPOINT_KEY": true, "SERVER_KEY": false} {
		write(t, project, "servers:\n  x:\n    command: [srv]\n    env: [LANG, "+name+"]\ntools: {}\n")
		_, err := Load(project, Options{UserDir: dir})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), ":4:17: servers.x.env.1: "+name+" holds the key of a model, which is not passed on to a server: remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
