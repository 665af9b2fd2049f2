// Package config reads sallyport.yaml: servers, contracts, budgets, approvers, model
// and state ([Load], [Parse], [Find]), and holds it against the user's own file, which
// it may tighten and never widen.
//
// It also owns the strict reading of every YAML file that people write here
// ([DecodeStrict]): unknown and duplicate keys, wrong types, a second document, anchors
// and tags are errors, all of them at once, each with file, line, column, the line
// itself and what to write instead ([Error]). Whoever checks more afterwards puts its
// findings at their places with [File.Problem].
//
// It starts nothing and asks no server: what a tool really is, package tools/bridge
// finds out.
package config
