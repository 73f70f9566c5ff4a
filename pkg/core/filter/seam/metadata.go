package seam

import (
	"maps"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Metadata is the namespace of what the gateway says in the metadata of hosts and routes.
const Metadata = "gatehouse"

// Saying returns metadata that also has a value.
func Saying(before *corev3.Metadata, name string, value *structpb.Value) *corev3.Metadata {
	fields := map[string]*structpb.Value{name: value}
	maps.Copy(fields, before.GetFilterMetadata()[Metadata].GetFields())
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{Metadata: {Fields: fields}}}
}

// Said returns a value of metadata; nil if there is none.
func Said(m *corev3.Metadata, name string) *structpb.Value {
	return m.GetFilterMetadata()[Metadata].GetFields()[name]
}
