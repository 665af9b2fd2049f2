package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/bridge"
	"sallyport/tools/grant"
)

// builtinText is a configuration of both of our servers.
const builtinText = `
servers:
  calc: {builtin: calc, timeout: 20s}
  docs: {builtin: docs, root: desk, scope: doctor, timeout: 20s}
tools:
  calc__add: {owner: doctor, risk: read, output: none}
  docs__search_documents: {owner: doctor, risk: read, result: status}
  docs__read_document: {owner: doctor, risk: read, result: status}
`

// builtins starts our own servers, over a folder and with a key that are made for it.
func (d *doctor) builtins(ctx context.Context) {
	conf, key, err := d.builtinConfig()
	if err != nil {
		d.failErr("builtin", "", err)
		return
	}
	for _, s := range conf.Servers {
		d.server(ctx, "builtin "+s.Prefix, s, conf.Tools, []agent.Approver{{Key: key}})
	}
}

func (d *doctor) builtinConfig() (*config.Config, string, error) {
	for _, below := range []string{"sources", "reports"} {
		if err := os.MkdirAll(filepath.Join(d.scratch, "desk", below), 0o700); err != nil {
			return nil, "", fmt.Errorf("make a folder of documents to try: %w", err)
		}
	}
	key, err := grant.NewPrivateKey("doctor", nil)
	if err != nil {
		return nil, "", err
	}
	conf, err := config.Parse(filepath.Join(d.scratch, config.FileName), []byte(builtinText))
	return conf, key.Public().String(), err
}

// servers starts the servers of the project, one after the other.
func (d *doctor) servers(ctx context.Context) {
	if d.conf == nil || len(d.conf.Servers) == 0 {
		d.skip("servers", "no configuration names any")
		return
	}
	for _, s := range d.conf.Servers {
		d.server(ctx, "server "+s.Prefix, s, d.conf.Tools, d.conf.Keys)
		if ctx.Err() != nil {
			return
		}
	}
}

// server starts a server, and finds its tools, in a state directory of its own.
func (d *doctor) server(ctx context.Context, check string, s tools.Server, contracts []tools.Contract, approvers []agent.Approver) {
	contracts = slices.DeleteFunc(slices.Clone(contracts), func(c tools.Contract) bool { return c.Prefix() != s.Prefix })
	if s.Builtin == "docs" && len(approvers) == 0 {
		d.fail(check, exitNoKey, "make a key: sallyport keys new", "it does not start without the public key of somebody who may approve")
		return
	}
	host := &scenarios.Host{StateDir: filepath.Join(d.scratch, "servers"), Self: d.self, Log: zerolog.Nop()}
	began := time.Now()
	found, err := host.Discover(ctx, scenarios.Setup{Servers: []tools.Server{s}, Contracts: contracts}, approvers)
	took := time.Since(began).Round(time.Millisecond)
	var missing *scenarios.Unreachable
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &missing):
		d.fail(check, exitUnreachable, "try its command by hand: "+commandOf(s)+"; if a run may do without it, write `optional: true`", "%s, after %s", problemsText(missing.Problems), took)
	case err != nil:
		d.fail(check, exitUsage, "give one of the two a description of its own in the configuration", "%s", err)
	case len(found.Servers) == 0:
		d.warn(check, "try its command by hand: "+commandOf(s), "%s, after %s; it is optional", problemsText(found.Problems), took)
	default:
		says := fmt.Sprintf("it speaks MCP %s, and %d of %d contracted tools are there, after %s", found.Servers[0].Protocol, len(found.Tools), len(contracts), took)
		if len(found.Problems) > 0 {
			d.warn(check, "have the contract fit the server, or leave the tool out; sallyport accept "+s.Prefix+" tries more", "%s\n%s", says, problemsText(found.Problems))
			return
		}
		d.pass(check, "%s", says)
	}
}

func problemsText(problems []bridge.Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
		if detail := strings.TrimSpace(p.Detail); detail != "" {
			texts[i] += ": " + detail
		}
	}
	return strings.Join(texts, "\n")
}

// commandOf is how a server is started, for somebody who tries it.
func commandOf(s tools.Server) string {
	if s.Builtin != "" {
		return "sallyport mcp " + s.Builtin + " --help"
	}
	return strings.Join(s.Command, " ")
}
