package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// redacted replaces in JSON what Envoy's own definitions call sensitive.
const redacted = "<redacted>"

// JSON returns the resource in Envoy's own JSON, with the names of the .proto
// files. Strings and bytes that are marked sensitive there (private keys,
// inline secrets), and key sets with shared keys, become "<redacted>".
func (r *Resource) JSON() (json.RawMessage, error) {
	m, err := r.Body.UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("decoding %s %q: %w", r.Body.GetTypeUrl(), r.Name, err)
	}
	if err := redact(m.ProtoReflect(), false); err != nil {
		return nil, fmt.Errorf("redacting %s %q: %w", r.Body.GetTypeUrl(), r.Name, err)
	}
	out, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing %s %q: %w", r.Body.GetTypeUrl(), r.Name, err)
	}
	return out, nil
}

// redact changes m and messages packed in it. secret means that all of m is
// sensitive.
func redact(m protoreflect.Message, secret bool) (err error) {
	if packed, ok := m.Interface().(*anypb.Any); ok {
		return redactPacked(packed, secret)
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		hide := secret || isSensitive(fd)
		switch {
		case fd.IsList():
			for i := range v.List().Len() {
				err = redactValue(fd, v.List().Get(i), hide, func(to protoreflect.Value) { v.List().Set(i, to) })
				if err != nil {
					return false
				}
			}
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, element protoreflect.Value) bool {
				err = redactValue(fd.MapValue(), element, hide, func(to protoreflect.Value) { v.Map().Set(k, to) })
				return err == nil
			})
		default:
			err = redactValue(fd, v, hide, func(to protoreflect.Value) { m.Set(fd, to) })
		}
		return err == nil
	})
	return err
}

func redactValue(
	fd protoreflect.FieldDescriptor, v protoreflect.Value, secret bool, set func(protoreflect.Value),
) error {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return redact(v.Message(), secret)
	case protoreflect.StringKind:
		// A shared key is in a key set, which Envoy does not call sensitive.
		if secret || strings.Contains(v.String(), `"kty":"oct"`) {
			set(protoreflect.ValueOfString(redacted))
		}
	case protoreflect.BytesKind:
		if secret {
			set(protoreflect.ValueOfBytes([]byte(redacted)))
		}
	}
	return nil
}

func redactPacked(packed *anypb.Any, secret bool) error {
	if packed.GetTypeUrl() == "" { // as in a FilterConfig that only turns a filter on
		return nil
	}
	inner, err := packed.UnmarshalNew()
	if err != nil {
		return err
	}
	if err := redact(inner.ProtoReflect(), secret); err != nil {
		return err
	}
	return packed.MarshalFrom(inner)
}

func isSensitive(fd protoreflect.FieldDescriptor) bool {
	sensitive, _ := proto.GetExtension(fd.Options(), annotations.E_Sensitive).(bool)
	return sensitive
}
