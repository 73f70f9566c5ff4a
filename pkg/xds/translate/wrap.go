package translate

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// message is an Envoy message with the validation rules of its .proto file.
type message interface {
	proto.Message
	ValidateAll() error
}

// pack validates a message and puts it into an Any. Nothing else validates it:
// for the message around it, an Any is bytes.
func pack(m message) (*anypb.Any, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, err
	}
	out := &anypb.Any{}
	return out, anypb.MarshalFrom(out, m, proto.MarshalOptions{Deterministic: true})
}

func u32[T int | uint32](n T) *wrapperspb.UInt32Value { return wrapperspb.UInt32(uint32(n)) }

func seconds(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

// adsSource waits for its resource without a timeout: a listener that opens
// before it has its routes would answer 404 for hosts that exist.
func adsSource() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		InitialFetchTimeout:   seconds(0),
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func socketAddress(host string, port int) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)}, //nolint:gosec // bounded by validation
	}}}
}
