package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"sallyport/agent"
)

// An export is JSON lines, in this order and no other: a header, the entries exactly
// as they are stored, one line for each body that they name in the order in which
// they first do, and an end, so that a file that was cut off is not taken for whole.
//
//	{"sallyport_export":0,"run":"r-1"}
//	{"entry":{…the stored bytes…}}
//	{"body":{"sha256":"…","bytes":12,"data":"BASE64"}}
//	{"body":{"sha256":"…","bytes":12,"absent":"erased"}}
//	{"end":{"entries":9,"bodies":7,"head":"…"}}

// ExportVersion is the format of exports that this package writes, and the newest it
// reads.
const ExportVersion = 0

// MaxLine bounds a line of an export, in bytes: what [CheckExport] holds in memory of
// content at any moment. A body of more than about 12 MiB cannot be exported.
const MaxLine = 16 << 20

// Why a body's line holds no content.
const (
	absentErased  = "erased"
	absentLeftOut = "left_out"
	absentMissing = "missing"
)

type header struct {
	Version *int   `json:"sallyport_export"`
	Run     string `json:"run"`
}

type bodyLine struct {
	Body *exportedBody `json:"body,omitempty"`
	End  *trailer      `json:"end,omitempty"`
}

type exportedBody struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Data   []byte `json:"data,omitempty"`
	Absent string `json:"absent,omitempty"`
}

type trailer struct {
	Entries int64  `json:"entries"`
	Bodies  int    `json:"bodies"`
	Head    string `json:"head"`
}

// The frame around the stored bytes of an entry.
const (
	beforeEntry = `{"entry":`
	afterEntry  = `}`
)

// Export writes a run as one self-contained file. bodies is as for [Check]:
// [WithoutBodies] leaves all content out, a function of the caller's may leave out
// some by [ErrNotIncluded]. What is missing or damaged is exported as it is, for
// [CheckExport] to find; an error means that the file is not whole.
func Export(w io.Writer, entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error)) error {
	if bodies == nil {
		bodies = WithoutBodies
	}
	x := exporter{out: bufio.NewWriter(w), content: newContent()}
	for e, err := range entries {
		if err == nil {
			err = x.entry(&e)
		}
		if err != nil {
			return fmt.Errorf("export: entry %d: %w", x.end.Entries+1, err)
		}
	}
	if x.end.Entries == 0 {
		return errors.New("export: the journal is empty")
	}
	for _, ref := range x.content.order {
		data, err := bodies(ref)
		if err := x.body(ref, data, err); err != nil {
			return fmt.Errorf("export: body %s: %w", ref, err)
		}
	}
	x.end.Bodies = len(x.content.order)
	if err := x.line(bodyLine{End: &x.end}); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := x.out.Flush(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type exporter struct {
	out     *bufio.Writer
	content content
	end     trailer
}

// line writes a value as one line.
func (x *exporter) line(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	return x.raw(data)
}

func (x *exporter) raw(data []byte) error {
	if len(data) > MaxLine {
		return fmt.Errorf("a line of %d bytes, at most %d", len(data), MaxLine)
	}
	if _, err := x.out.Write(data); err != nil {
		return err
	}
	return x.out.WriteByte('\n')
}

func (x *exporter) entry(e *agent.Entry) error {
	if x.end.Entries == 0 {
		version := ExportVersion
		if err := x.line(header{Version: &version, Run: e.Run}); err != nil {
			return err
		}
	}
	if bytes.ContainsAny(e.Bytes(), "\r\n") {
		return errors.New("its stored bytes are more than one line")
	}
	payload, err := e.Payload()
	if err != nil {
		payload = nil // the auditor says so
	}
	x.content.take(e, payload)
	x.end.Entries, x.end.Head = x.end.Entries+1, e.Hash()
	return x.raw(append(append([]byte(beforeEntry), e.Bytes()...), afterEntry...))
}

func (x *exporter) body(ref agent.BodyRef, data []byte, err error) error {
	b := exportedBody{SHA256: ref.SHA256, Bytes: ref.Bytes, Data: data}
	switch {
	case errors.Is(err, ErrNotIncluded):
		b.Data, b.Absent = nil, absentLeftOut
	case errors.Is(err, agent.ErrNoBody) && x.content.erased[ref.SHA256] != 0:
		b.Data, b.Absent = nil, absentErased
	case errors.Is(err, agent.ErrNoBody), errors.Is(err, agent.ErrIntegrity):
		b.Data, b.Absent = nil, absentMissing
	case err != nil:
		return err
	}
	return x.line(bodyLine{Body: &b})
}
