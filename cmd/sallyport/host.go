package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/scenarios"
)

// logFolder holds the JSON logs of a state directory, one file for each run.
const logFolder = "log"

// hostOn makes the host of a run on an open engine, for that operator. done closes its
// log.
func (a *app) hostOn(e agent.Engine, dir, run, operator string) (host *scenarios.Host, done func(), err error) {
	self, err := self()
	if err != nil {
		return nil, nil, err
	}
	out, done, err := a.log(dir, run)
	if err != nil {
		return nil, nil, err
	}
	return &scenarios.Host{
		Engine: e, StateDir: dir, Self: self, Actor: operator, Endpoint: a.endpoint,
		Log: zerolog.New(out).With().Timestamp().Logger(),
	}, done, nil
}

// log opens the JSON log: --log-file, or a file of the run in the state directory,
// made when the first line is written.
func (a *app) log(dir, run string) (io.Writer, func(), error) {
	if a.logFile == "-" {
		return a.stderr, func() {}, nil
	}
	l := &logFile{path: a.logFile}
	if a.logFile == "" {
		l.path = filepath.Join(dir, logFolder, run+".jsonl")
		l.folder = filepath.Join(dir, logFolder)
	} else if err := l.open(); err != nil {
		return nil, nil, usage("give a file that can be appended to", "open the log: %w", err)
	}
	return l, l.close, nil
}

// self is the executable that builtin servers are started from.
func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find our own executable: %w", err)
	}
	return path, nil
}
