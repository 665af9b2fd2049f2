package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sallyport/agent"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

// ErrNotExport: the file does not begin as an export of a run does.
var ErrNotExport = errors.New("not an export of a run")

// maxEntries bounds what an export may hold: far beyond what any budget lets a run
// write.
const maxEntries = 1 << 20

// CheckExport checks a file that [Export] wrote, as [Check] does, knowing nothing but
// the public keys that the auditor trusts, one line each ("ed25519 BASE64 NAME"). Each
// approver that the run pinned must be among them: else a signature proves only that
// somebody had a key.
//
// It reads r once. In memory it holds one line (see [MaxLine]) and the names of the
// bodies. A break, also of the file's own form, is a [*Break]; a newer format is
// [agent.ErrNewer], any other file [ErrNotExport].
func CheckExport(r io.Reader, keys []string) (Report, error) {
	return checkExport(newChecker(), r, keys)
}

func checkExport(c *checker, r io.Reader, keys []string) (Report, error) {
	trusted := map[string]bool{}
	for i, line := range keys {
		k, err := grant.ParsePublicKey(line)
		if err != nil {
			return Report{}, fmt.Errorf("trusted key %d: %w", i+1, err)
		}
		trusted[k.String()] = true
	}
	x := reader{checker: c, in: bufio.NewReaderSize(r, 64<<10)}
	if err := x.header(); err != nil {
		return Report{}, err
	}
	c.trusts = func(key string) bool { return trusted[key] }
	if err := x.lines(); err != nil {
		return c.report, err
	}
	if x.end == nil {
		c.broken(max(c.report.Entries, 1), BreakEntry, "the file was cut off behind line %d", x.number)
	}
	return c.result()
}

// reader reads an export line by line.
type reader struct {
	checker *checker
	in      *bufio.Reader
	number  int64 // of the line in hand
	run     string
	bodies  int  // that were read
	behind  bool // behind the entries: a body or the end was read
	end     *trailer
}

var errLine = errors.New("a line that is too long, or not ended")

// line returns the next line, valid until the next call, or io.EOF.
func (x *reader) line(buf []byte) ([]byte, error) {
	buf = buf[:0]
	for {
		part, err := x.in.ReadSlice('\n')
		if len(buf)+len(part) > MaxLine+1 {
			return buf, errLine
		}
		buf = append(buf, part...)
		switch {
		case err == nil:
			x.number++
			return buf[:len(buf)-1], nil
		case errors.Is(err, io.EOF) && len(buf) == 0:
			return buf, io.EOF
		case errors.Is(err, io.EOF):
			return buf, errLine
		case !errors.Is(err, bufio.ErrBufferFull):
			return buf, fmt.Errorf("read the export: %w", err)
		}
	}
}

func (x *reader) header() error {
	line, err := x.line(nil)
	if err != nil && !errors.Is(err, errLine) && !errors.Is(err, io.EOF) {
		return err
	}
	var newer struct {
		Version *int `json:"sallyport_export"`
	}
	if err != nil || json.Unmarshal(line, &newer) != nil || newer.Version == nil {
		return ErrNotExport
	}
	if *newer.Version > ExportVersion {
		return fmt.Errorf("export format %d: %w", *newer.Version, agent.ErrNewer)
	}
	var h header
	if err := strictjson.Decode(line, &h); err != nil || *h.Version != ExportVersion || agent.CheckRunID(h.Run) != nil {
		return ErrNotExport
	}
	x.run = h.Run
	return nil
}

// lines reads what follows the header, up to a line that cannot be.
func (x *reader) lines() error {
	var buf []byte
	for {
		line, err := x.line(buf)
		buf = line[:cap(line)]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLine):
			x.refuse("%v", err)
			return nil
		case err != nil:
			return err
		}
		more, err := x.take(line)
		if err != nil || !more {
			return err
		}
	}
}

// refuse records that the line in hand is none of an export.
func (x *reader) refuse(format string, args ...any) {
	seq := x.checker.report.Entries
	if !x.behind {
		seq++
	}
	x.checker.broken(seq, BreakEntry, "line %d of the file: %s", x.number, fmt.Sprintf(format, args...))
	x.end = &trailer{} // one break is enough
}

// take takes a line, and reports whether more may follow.
func (x *reader) take(line []byte) (bool, error) {
	raw, isEntry := bytes.CutPrefix(line, []byte(beforeEntry))
	c := x.checker
	switch {
	case x.end != nil:
		x.refuse("it follows the end")
		return false, nil
	case !isEntry:
		return x.other(line)
	case x.behind || c.report.Entries >= maxEntries:
		x.refuse("an entry too many, or out of its place")
		return false, nil
	}
	raw, closed := bytes.CutSuffix(raw, []byte(afterEntry))
	if !closed {
		x.refuse("it is not an entry")
		return false, nil
	}
	if err := c.entry(bytes.Clone(raw)); err != nil {
		return false, err
	}
	if c.report.Run != "" && c.report.Run != x.run {
		x.refuse("it is of another run than the file")
		return false, nil
	}
	if c.stopped {
		x.end = &trailer{}
	}
	return !c.stopped, nil
}

// other takes a body or the end.
func (x *reader) other(line []byte) (bool, error) {
	var l bodyLine
	if err := strictjson.Decode(line, &l); err != nil {
		x.refuse("it is neither an entry nor a body: %v", err)
		return false, nil
	}
	if (l.Body == nil) == (l.End == nil) {
		x.refuse("it is neither a body nor the end")
		return false, nil
	}
	x.behind = true
	switch {
	case x.checker.lost:
		x.end = &trailer{} // behind a broken chain nobody knows which bodies belong
		return false, nil
	case l.End != nil:
		return x.ends(*l.End)
	}
	return x.body(*l.Body)
}

func (x *reader) body(b exportedBody) (bool, error) {
	c := x.checker
	ref := agent.BodyRef{SHA256: b.SHA256, Bytes: b.Bytes}
	if x.bodies >= len(c.content.order) || c.content.order[x.bodies] != ref {
		x.refuse("the body %q is not the next that the entries name", b.SHA256)
		return false, nil
	}
	x.bodies++
	var err error
	switch b.Absent {
	case "":
	case absentLeftOut:
		err = ErrNotIncluded
	case absentErased, absentMissing:
		err = agent.ErrNoBody
	default:
		x.refuse("a body is absent for no known reason")
		return false, nil
	}
	if b.Absent != "" && len(b.Data) > 0 {
		x.refuse("a body is absent and there")
		return false, nil
	}
	return true, c.body(ref, b.Data, err)
}

func (x *reader) ends(t trailer) (bool, error) {
	c := x.checker
	have := trailer{Entries: c.report.Entries, Bodies: x.bodies, Head: c.report.Head}
	if t != have {
		x.refuse("the end says %+v, the file holds %+v", t, have)
		return false, nil
	}
	for _, ref := range c.content.order[x.bodies:] {
		if err := c.body(ref, nil, agent.ErrNoBody); err != nil {
			return false, err
		}
	}
	x.end = &t
	return true, nil
}
