package server

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
)

// These are field numbers of a DeltaDiscoveryResponse (discovery.proto).
// snapshot.Resource.Wire contains the field of a resource.
const (
	systemVersionField    = 1
	typeURLField          = 4
	nonceField            = 5
	removedResourcesField = 6
)

// codec encodes a response without a copy of its resources, which all streams
// share. It encodes everything else like gRPC.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// response is a DeltaDiscoveryResponse that is sent to an Envoy.
type response struct{ message plan.Message }

// Marshal returns the bytes of v. No buffer of a response comes from a pool, so
// references to them need no count.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*response)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	return r.marshal()
}

func (r *response) marshal() (mem.BufferSlice, error) {
	m := &r.message
	head := mem.SliceBuffer(r.appendHead(nil))
	if m.Joined != nil {
		if joined := m.Joined(); joined != nil {
			return mem.BufferSlice{head, mem.SliceBuffer(joined)}, nil
		}
	}
	out := append(make(mem.BufferSlice, 0, 1+len(m.Resources)), head)
	for _, resource := range m.Resources {
		wire := resource.Wire()
		if wire == nil {
			return nil, fmt.Errorf("encoding resource %q of %s: it has no bytes; make it with a function of package snapshot",
				resource.Name, m.Type)
		}
		out = append(out, mem.SliceBuffer(wire))
	}
	return out, nil
}

// appendHead appends all fields except the resources.
func (r *response) appendHead(to []byte) []byte {
	m := &r.message
	to = appendText(to, systemVersionField, strconv.FormatInt(m.Revision, 10))
	to = appendText(to, typeURLField, m.Type)
	to = appendText(to, nonceField, m.Nonce)
	for _, name := range m.Removed {
		to = appendText(to, removedResourcesField, name)
	}
	return to
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	to = protowire.AppendTag(to, field, protowire.BytesType)
	return protowire.AppendString(to, text)
}
