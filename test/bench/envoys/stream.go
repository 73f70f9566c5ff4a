package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// stream is one Envoy.
type stream struct {
	fleet        *fleet
	node, routes string
	met          *expectation // the last that it met
}

func (s *stream) run(ctx context.Context, conn *grpc.ClientConn) error {
	defer conn.Close()
	rpc, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName,
		grpc.ForceCodecV2(codec{}), grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(1<<30))
	if err != nil {
		return fmt.Errorf("opening a stream: %w", err)
	}
	first := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: s.node, Cluster: s.node}, TypeUrl: resourcev3.ClusterType}
	for _, req := range []*discoveryv3.DeltaDiscoveryRequest{first, {TypeUrl: resourcev3.ListenerType}} {
		if err := rpc.SendMsg(req); err != nil {
			return fmt.Errorf("asking: %w", err)
		}
	}
	for subscribed := false; ; {
		r := response{fleet: s.fleet}
		if err := rpc.RecvMsg(&r); err != nil {
			return fmt.Errorf("receiving: %w", err)
		}
		if err := rpc.SendMsg(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.typeURL, ResponseNonce: r.nonce}); err != nil {
			return fmt.Errorf("acknowledging: %w", err)
		}
		if r.typeURL == resourcev3.ListenerType && !subscribed {
			subscribed = true
			err := rpc.SendMsg(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.RouteType, ResourceNamesSubscribe: []string{s.routes}})
			if err != nil {
				return fmt.Errorf("asking for routes: %w", err)
			}
		}
		if r.holds != nil && r.holds != s.met {
			s.met = r.holds
			r.holds.met()
		}
	}
}

// response is what the stream reads of a DeltaDiscoveryResponse.
type response struct {
	fleet          *fleet
	typeURL, nonce string
	// holds is the expectation that this route configuration meets; otherwise nil.
	holds *expectation
}

// Fields of DeltaDiscoveryResponse (envoy/service/discovery/v3/discovery.proto).
const fieldTypeURL, fieldNonce = 4, 5

// read skips the resources.
func (r *response) read(message []byte) error {
	for rest := message; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return protowire.ParseError(n)
		}
		rest = rest[n:]
		if n = protowire.ConsumeFieldValue(field, kind, rest); n < 0 {
			return protowire.ParseError(n)
		}
		switch value, _ := protowire.ConsumeBytes(rest[:n]); field {
		case fieldTypeURL:
			r.typeURL = string(value)
		case fieldNonce:
			r.nonce = string(value)
		}
		rest = rest[n:]
	}
	if e := r.fleet.current.Load(); r.typeURL == resourcev3.RouteType && bytes.Contains(message, e.text) {
		r.holds = e
	}
	return nil
}

// codec writes requests, and reads the parts of responses that a stream needs.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errors.New("not a message")
	}
	b, err := proto.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*response)
	if !ok {
		return errors.New("not a response")
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return r.read(b.ReadOnlyData())
}
