package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"sallyport/tools/strictjson"
)

// Version is the journal format of new runs, and the newest that this package reads. A
// run goes on in the format that it was begun in. Version 1 lacks what version 2 added:
// usage from a cache, costs, forks and substitutes. Version 0 has the form of version 1.
const Version = 2

// EntryKind says what an entry is: only an event moved the run.
type EntryKind string

// The kinds of entries.
const (
	EntryEvent   EntryKind = "event"   // Step took an event
	EntryAttempt EntryKind = "attempt" // an open effect is performed again
	EntryNoted   EntryKind = "noted"   // a delivery, or a result, was refused
	EntryErased  EntryKind = "erased"  // the content of a body was removed
)

// Entry is one line of a run's journal.
type Entry struct {
	Version int       `json:"v"`
	Run     string    `json:"run"`
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Kind    EntryKind `json:"kind"`
	Prev    string    `json:"prev"` // hash of the entry before; empty in the first

	// What was said: kinds event and noted. Effect is the sequence of the event
	// whose effect a result answers, and of the effect that is attempted again.
	Origin Origin          `json:"origin,omitempty"`
	Actor  string          `json:"actor,omitempty"`
	Event  Kind            `json:"event,omitempty"`
	Effect int64           `json:"effect,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	// Carried is the parent's entry that a fork takes the event from; 0 for its own.
	Carried int64 `json:"carried,omitempty"`

	// What it meant: kind event only.
	Row     Row      `json:"row,omitempty"`
	State   State    `json:"state,omitempty"`
	Effects []Effect `json:"effects,omitempty"`

	Code string  `json:"code,omitempty"` // noted: why it was refused
	Body BodyRef `json:"body,omitzero"`  // erased: what is gone

	raw  []byte
	hash string
}

// Bytes is the entry as stored; its hash is over exactly these.
func (e *Entry) Bytes() []byte { return e.raw }

// Hash is the lower-case hex SHA-256 of the stored bytes.
func (e *Entry) Hash() string { return e.hash }

// Advance steps a run and makes the entry that records it: what an engine appends
// before it performs anything. The new run's Head is the entry's hash.
func Advance(run Run, ev Event) (Run, Entry, error) {
	if run.State == StateNone {
		run.Version = Version
	}
	if spec, ok := ev.body.(Spec); ok && spec.Fork != nil && !ev.fork {
		return run, Entry{}, refuse(CodeInvalid, "a fork begins with what it carries, and this engine cannot fork")
	}
	ev.body = inFormat(run.Version, ev.body)
	next, row, err := step(run, ev)
	if err != nil {
		return run, Entry{}, err
	}
	e, err := spoken(run, EntryEvent, ev)
	if err != nil {
		return run, Entry{}, err
	}
	e.Run, e.Row, e.State, e.Actor = next.ID, row, next.State, next.by
	next.by = ""
	if next.Open != nil && next.Open.Seq == next.Seq {
		e.Effects = []Effect{next.Open.Effect}
	}
	if err := e.seal(); err != nil {
		return run, Entry{}, err
	}
	next.Head = e.hash
	if e.Effects != nil {
		next.Open.Head = e.hash
	}
	return next, e, nil
}

// Attempt makes the entry that says that the open effect is performed again. The
// time until then was not work: it does not count against the budget.
func Attempt(run Run, at time.Time) (Run, Entry, error) {
	if !run.repeatable() {
		return run, Entry{}, refuse(CodeStale, "no effect is open that may be repeated")
	}
	e := frame(run, EntryAttempt, stamp(at))
	e.Effect = run.Open.Seq
	return record(run, e)
}

// Note makes the entry of a refused event: no step, no change. It returns false
// where the run has noted as many as it may.
func Note(run Run, ev Event, why *Refusal) (Run, Entry, bool, error) {
	if run.Noted >= MaxNoted {
		return run, Entry{}, false, nil
	}
	if ev.time.Before(run.Time) {
		ev.time = run.Time
	}
	e, err := spoken(run, EntryNoted, ev)
	if err != nil {
		return run, Entry{}, false, err
	}
	e.Code = why.Code
	run.Noted++
	run, e, err = record(run, e)
	return run, e, err == nil, err
}

// Erase makes the entry that says that a body's content is gone.
func Erase(run Run, ref BodyRef, actor string, at time.Time) (Run, Entry, error) {
	e := frame(run, EntryErased, stamp(at))
	e.Actor, e.Origin, e.Body = actor, OriginOperator, ref
	return record(run, e)
}

// record seals an entry that does not step, and moves the run past it.
func record(run Run, e Entry) (Run, Entry, error) {
	if e.Time.Before(run.Time) {
		e.Time = run.Time
	}
	if err := e.seal(); err != nil {
		return run, Entry{}, err
	}
	return passed(run, e), e, nil
}

func frame(run Run, kind EntryKind, at time.Time) Entry {
	return Entry{Version: run.Version, Run: run.ID, Seq: run.Seq + 1, Time: at, Kind: kind, Prev: run.Head}
}

// spoken is the frame of an entry that records an event.
func spoken(run Run, kind EntryKind, ev Event) (Entry, error) {
	e := frame(run, kind, ev.time)
	e.Origin, e.Actor, e.Event, e.Effect, e.Carried = ev.origin, ev.actor, ev.Kind(), ev.effect, ev.carried
	if _, ok := ev.body.(tick); ok {
		return e, nil
	}
	data, err := json.Marshal(ev.body)
	if err != nil {
		return e, fmt.Errorf("encode event %s: %w", e.Event, err)
	}
	e.Data = data
	return e, nil
}

// seal encodes the entry and hashes the bytes.
func (e *Entry) seal() error {
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode entry %d: %w", e.Seq, err)
	}
	sum := sha256.Sum256(raw)
	e.raw, e.hash = raw, hex.EncodeToString(sum[:])
	return nil
}

// Bodies are the bodies that the entry names, and that its run must have; what a
// refused delivery names was never stored. Some may be zero.
func (e *Entry) Bodies() ([]BodyRef, error) {
	if e.Kind != EntryEvent {
		return nil, nil
	}
	ev, err := e.said()
	if err != nil {
		return nil, err
	}
	return named(ev.body), nil
}

// ParseEntry decodes stored bytes, strictly. It does not judge what they say: that
// is [Replay]'s. An entry of a newer format is [ErrNewer].
func ParseEntry(raw []byte) (Entry, error) {
	var e Entry
	if err := strictjson.Decode(raw, &e); err != nil {
		return Entry{}, unreadable(raw, err)
	}
	if e.Version > Version {
		return Entry{}, newer(e.Version)
	}
	sum := sha256.Sum256(raw)
	e.raw, e.hash = raw, hex.EncodeToString(sum[:])
	return e, nil
}

// unreadable says why bytes are no entry of a known format.
func unreadable(raw []byte, why error) error {
	var v struct {
		Version int `json:"v"`
	}
	switch err := json.Unmarshal(raw, &v); {
	case err != nil:
		return fmt.Errorf("%w: an entry that is not JSON", ErrIntegrity)
	case v.Version > Version:
		return newer(v.Version)
	}
	return fmt.Errorf("%w: a malformed entry: %w", ErrIntegrity, why)
}

func newer(version int) error { return fmt.Errorf("journal format %d: %w", version, ErrNewer) }

// Payload decodes what the entry's event says: a [Spec], a [Result], a [Decision];
// nil for a tick.
func (e *Entry) Payload() (any, error) {
	ev, err := e.said()
	if err != nil {
		return nil, err
	}
	return ev.Payload(), nil
}

// said is the event that the entry records.
func (e *Entry) said() (Event, error) {
	ev := Event{time: e.Time, origin: e.Origin, actor: e.Actor, effect: e.Effect, carried: e.Carried}
	decode, ok := payloads[e.Event]
	if !ok {
		return ev, fmt.Errorf("%w: entry %d: an event of unknown kind %q", ErrIntegrity, e.Seq, e.Event)
	}
	body, err := decode(e.Data)
	if err != nil {
		return ev, fmt.Errorf("%w: entry %d: event %s: %w", ErrIntegrity, e.Seq, e.Event, err)
	}
	ev.body = body
	return ev, nil
}

// payloads decodes each kind of event. A kind without a row here cannot be read.
var payloads = map[Kind]func([]byte) (payload, error){
	KindStart:       as[Spec],
	KindTurned:      as[Turned],
	KindTurnRefused: as[TurnRefused],
	KindUnreached:   as[Unreached],
	KindChecked:     as[Checked],
	KindReturned:    as[Returned],
	KindObserved:    as[Observed],
	KindVerified:    as[Verified],
	KindApprove:     as[Approve],
	KindRefuse:      as[Refuse],
	KindEdit:        as[Edit],
	KindAttest:      as[Attest],
	KindCancel:      as[Cancel],
	KindPause:       as[Pause],
	KindResume:      as[Resume],
	KindStepOnce:    as[StepOnce],
	KindExtend:      as[Extend],
	KindSubstitute:  as[Substitute],
	KindTick:        func([]byte) (payload, error) { return tick{}, nil },
}

func as[P payload](data []byte) (payload, error) {
	var p P
	if err := strictjson.Decode(data, &p); err != nil {
		return nil, err
	}
	return p, nil
}

// EncodeDecision gives the wire form of a decision: what an inbox keeps.
func EncodeDecision(d Decision) (Kind, []byte, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return "", nil, fmt.Errorf("encode decision %s: %w", d.kind(), err)
	}
	return d.kind(), data, nil
}

// DecodeDecision is the inverse of [EncodeDecision], strict.
func DecodeDecision(kind Kind, data []byte) (Decision, error) {
	decode, ok := payloads[kind]
	if !ok {
		return nil, fmt.Errorf("decode decision: unknown kind %q", kind)
	}
	p, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode decision %s: %w", kind, err)
	}
	d, ok := p.(Decision)
	if !ok {
		return nil, fmt.Errorf("decode decision: %s is none", kind)
	}
	return d, nil
}
