// Package scriptserver is an MCP server on stdin and stdout whose whole behaviour is written down: what
// it lists, what it answers and when, and what it does wrong. Scenarios use it to stand in for servers
// that crash, lie, change their tools or send what no server should, as real child processes.
//
// A [Script] is the description. [Parse] reads it from JSON, other packages from YAML by its tags;
// [Script.Check] says what is wrong with it, and [Serve] plays it. Told nothing special, the server
// speaks the protocol as it should. It writes its frames itself, without a protocol library, because no
// library would write most of them.
//
// It acts for real: it writes files below the folder that it is given and notes there, in [RecordFile],
// each message before it acts on it, so that "applied, then lost" is what a test can look at. It touches
// nothing else. It knows no contract and no Host. docs/scenarios/scripted-servers.md shows every key.
package scriptserver
