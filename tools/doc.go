// Package tools owns what an operator says about tool servers and what is checked
// of them before anything is sent: [Contract] and [Server] with their rules
// ([Validate]), model-side names ([Registry]), definitions as a server sent them
// ([ParseDefinition], [NewTool]), the accepted part of JSON Schema ([NewSchema]) and the
// model's arguments ([DecodeArguments]).
//
// A contract is the only source of a tool's risk; what a server says of itself is a
// hint and grants nothing. The package opens no file, connection or process: package
// tools/bridge talks to servers, package scenarios/config reads the files.
//
// Errors that may reach a model or a log are fixed words; the text of a server, of a
// model or of a library is never part of them.
package tools
