package strictjson

import (
	jsonv1 "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode stores the JSON value data in the value that v points to. Besides what
// [Check] refuses under [FrameLimits] (the size apart), it refuses members that
// the Go type lacks, names that differ in case, numbers that the Go type does not
// hold exactly as written (2.0 and "2" are no integers), and null, at the top and
// for anything but a pointer, an interface or a raw value. Members that are absent
// leave their fields zero: requiring them is the caller's business.
//
// On error the value that v points to is unchanged; on success it holds nothing
// of what it held before. A float64 or an any rounds large numbers: use
// [jsontext.Value] where the text matters.
func Decode(data []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("%w: decode needs a pointer", ErrTarget)
	}
	if err := Check(data, formLimits); err != nil {
		return err
	}
	fresh := reflect.New(target.Type().Elem())
	if err := json.Unmarshal(data, fresh.Interface(), decodeOptions); err != nil {
		return decodeRefusal(err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// Encode returns the canonical form of a Go value: nil slices and maps are
// empty ones, and strings must be UTF-8. What it returns, [Decode] reads back
// into a value of the same type.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: encode %T", ErrTarget, v)
	}
	return Canonical(data)
}

var decodeOptions = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(refuseNull)),
)

// refuseNull runs before any Go value is filled. v is a pointer to that value.
func refuseNull(dec *jsontext.Decoder, v any) error {
	if dec.PeekKind() != jsontext.KindNull || dec.StackDepth() > 0 && mayBeNull(reflect.TypeOf(v).Elem()) {
		return errors.ErrUnsupported // left to the ordinary decoding
	}
	return ErrNull
}

func mayBeNull(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[jsontext.Value](), reflect.TypeFor[jsonv1.RawMessage]():
		return true
	}
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface
}

// decodeRefusal drops the text of the parser's error, which quotes the input.
// The Go type is ours and may be named.
func decodeRefusal(err error) error {
	switch {
	case errors.Is(err, ErrNull):
		return ErrNull
	case errors.Is(err, json.ErrUnknownName):
		return ErrUnknown
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.GoType != nil {
		return fmt.Errorf("%w: for a Go %s", ErrType, semantic.GoType)
	}
	return ErrType
}
