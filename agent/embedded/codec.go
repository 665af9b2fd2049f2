package embedded

import (
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// parcel is a delivery as the inbox keeps it. The content of its bodies lies beside.
type parcel struct {
	Version int             `json:"v"`
	Kind    agent.Kind      `json:"kind"`
	Actor   string          `json:"actor,omitempty"`
	Data    json.RawMessage `json:"data"`
	Bodies  []agent.BodyRef `json:"bodies,omitempty"`
}

// parcelVersion is the format that this version writes, and the newest it reads.
const parcelVersion = 0

// encodeDelivery encodes all of a delivery but its key and the content of its bodies.
func encodeDelivery(d agent.Delivery) ([]byte, error) {
	if d.Decision == nil {
		return nil, errors.New("a delivery without a decision")
	}
	kind, data, err := agent.EncodeDecision(d.Decision)
	if err != nil {
		return nil, err
	}
	p := parcel{Version: parcelVersion, Actor: d.Actor, Kind: kind, Data: data}
	for _, b := range d.Bodies {
		p.Bodies = append(p.Bodies, b.Ref)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the delivery: %w", err)
	}
	// What this version could not read back is refused here, not in the inbox.
	if _, err := decodeDelivery(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// decodeDelivery is the reverse; the bodies have no content yet.
func decodeDelivery(raw []byte) (agent.Delivery, error) {
	var v struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return agent.Delivery{}, fmt.Errorf("%w: a delivery that is not JSON", agent.ErrIntegrity)
	}
	if v.Version > parcelVersion {
		return agent.Delivery{}, fmt.Errorf("delivery format %d: %w", v.Version, agent.ErrNewer)
	}
	var p parcel
	if err := strictjson.Decode(raw, &p); err != nil {
		return agent.Delivery{}, fmt.Errorf("%w: a malformed delivery: %w", agent.ErrIntegrity, err)
	}
	decision, err := agent.DecodeDecision(p.Kind, p.Data)
	if err != nil {
		return agent.Delivery{}, fmt.Errorf("%w: a malformed delivery: %w", agent.ErrIntegrity, err)
	}
	d := agent.Delivery{Actor: p.Actor, Decision: decision}
	for _, ref := range p.Bodies {
		d.Bodies = append(d.Bodies, agent.Body{Ref: ref})
	}
	return d, nil
}
