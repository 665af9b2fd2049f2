package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
)

// Bodies knows every field of every event that names a body.
func TestEntry_BodiesNamesWhatEveryEventNames(t *testing.T) {
	events := map[agent.Kind]any{
		agent.KindStart:       agent.Spec{Tools: []agent.Tool{}, Servers: []agent.Server{}, Approvers: []agent.Approver{}},
		agent.KindTurned:      agent.Turned{Calls: make([]agent.Proposal, 2)},
		agent.KindTurnRefused: agent.TurnRefused{}, agent.KindUnreached: agent.Unreached{}, agent.KindChecked: agent.Checked{},
		agent.KindReturned: agent.Returned{}, agent.KindObserved: agent.Observed{}, agent.KindVerified: agent.Verified{},
		agent.KindApprove: agent.Approve{}, agent.KindRefuse: agent.Refuse{}, agent.KindEdit: agent.Edit{},
		agent.KindAttest: agent.Attest{}, agent.KindCancel: agent.Cancel{}, agent.KindPause: agent.Pause{},
		agent.KindResume: agent.Resume{}, agent.KindStepOnce: agent.StepOnce{}, agent.KindExtend: agent.Extend{}, agent.KindTick: nil,
		agent.KindSubstitute: agent.Substitute{Turn: &agent.Turned{Calls: make([]agent.Proposal, 2)}, Outcome: &agent.Outcome{}},
	}
	for _, kind := range agent.Kinds() {
		event, known := events[kind]
		if !known {
			t.Errorf("%s: not in this table", kind)
			continue
		}
		var want []agent.BodyRef
		line := map[string]any{"v": 0, "kind": agent.EntryEvent, "event": kind}
		if event != nil {
			v := reflect.New(reflect.TypeOf(event)).Elem()
			v.Set(reflect.ValueOf(event))
			fillRefs(v, &want)
			line["data"] = v.Interface()
		}
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, as := range []agent.EntryKind{agent.EntryEvent, agent.EntryNoted} {
			entry, err := agent.ParseEntry(bytes.Replace(raw, []byte(`"kind":"event"`), fmt.Appendf(nil, `"kind":%q`, as), 1))
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			got, err := entry.Bodies()
			if as == agent.EntryNoted {
				want = nil
			}
			slices.SortFunc(got, func(a, b agent.BodyRef) int { return strings.Compare(a.SHA256, b.SHA256) })
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v: %v", as, kind, got, want, err)
			}
		}
	}
}

// fillRefs gives every reference in a value a name of its own.
func fillRefs(v reflect.Value, refs *[]agent.BodyRef) {
	switch {
	case v.Type() == reflect.TypeFor[agent.BodyRef]():
		ref := agent.BodyRef{SHA256: fmt.Sprintf("%064d", len(*refs)), Bytes: 1}
		v.Set(reflect.ValueOf(ref))
		*refs = append(*refs, ref)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillRefs(v.Field(i), refs)
			}
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		fillRefs(v.Elem(), refs)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			fillRefs(v.Index(i), refs)
		}
	}
}
