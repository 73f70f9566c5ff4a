package translate

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// message is an Envoy message with the validation rules of its .proto file.
type message = seam.Proto

func pack(m message) (*anypb.Any, error) { return seam.Pack(m) }

func u32[T int | uint32](n T) *wrapperspb.UInt32Value { return wrapperspb.UInt32(uint32(n)) }

func seconds(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

func headerMatcher(v ir.ValueMatch) *routev3.HeaderMatcher { return seam.HeaderMatcher(v) }

func stringMatcher(v ir.ValueMatch) *matcherv3.StringMatcher { return seam.StringMatcher(v) }

func socketAddress(host string, port int) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)}, //nolint:gosec // bounded by validation
	}}}
}
