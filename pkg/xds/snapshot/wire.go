package snapshot

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// These are field numbers (discovery.proto, any.proto).
const (
	responseResourcesField = 2
	resourceVersionField   = 1
	resourceBodyField      = 2
	resourceNameField      = 3
	anyTypeField           = 1
	anyValueField          = 2
)

// startResource returns a resource whose wire form ends where its body begins.
// It has capacity for a body of size bytes. The caller appends the body and
// calls setBody.
func startResource(typeURL, name string, version hash, size int) *Resource {
	r := &Resource{Name: name, Version: version.String(), Body: &anypb.Any{TypeUrl: typeURL}}
	body := sizeField(anyTypeField, len(typeURL)) + sizeField(anyValueField, size)
	whole := sizeField(resourceNameField, len(name)) + sizeField(resourceVersionField, len(r.Version)) +
		sizeField(resourceBodyField, body)

	wire := make([]byte, 0, sizeField(responseResourcesField, whole))
	wire = appendHead(wire, responseResourcesField, whole)
	wire = protowire.AppendString(protowire.AppendTag(wire, resourceNameField, protowire.BytesType), name)
	wire = protowire.AppendString(protowire.AppendTag(wire, resourceVersionField, protowire.BytesType), r.Version)
	wire = appendHead(wire, resourceBodyField, body)
	wire = protowire.AppendString(protowire.AppendTag(wire, anyTypeField, protowire.BytesType), typeURL)
	r.wire = appendHead(wire, anyValueField, size)
	return r
}

// setBody sets the wire form, which ends with the body.
func (r *Resource) setBody(wire []byte) {
	r.Body.Value = wire[len(r.wire):len(wire):len(wire)]
	r.wire = wire
}

// appendHead appends the tag and the length of a field with size bytes.
func appendHead(to []byte, field protowire.Number, size int) []byte {
	to = protowire.AppendTag(to, field, protowire.BytesType)
	return protowire.AppendVarint(to, uint64(size)) //nolint:gosec // a length
}

func sizeField(field protowire.Number, size int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(size)
}
