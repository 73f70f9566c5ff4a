package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// XDSClient acts as an Envoy towards a control plane: it has a stream of the delta
// protocol. It is safe for concurrent use.
type XDSClient struct {
	conn   *grpc.ClientConn
	rpc    discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   string
	answer func(*XDSResponse)
	cancel context.CancelFunc
	done   chan struct{}

	sending sync.Mutex // one Send at a time, as gRPC requires

	mu        sync.Mutex
	resources map[string]map[string]*discoveryv3.Resource
	changed   chan struct{} // closed, and replaced, on every change
	err       error
}

// XDSResponse is a response that needs an answer, Ack or Nack, now or later.
type XDSResponse struct {
	*discoveryv3.DeltaDiscoveryResponse
	client *XDSClient
}

// DialXDS connects under a node id. answer is called with each response, in order, on
// one goroutine; nil acknowledges everything. Without options, such as credentials, the
// connection has no TLS. Close closes the client.
func DialXDS(addr, node string, answer func(*XDSResponse), options ...grpc.DialOption) (*XDSClient, error) {
	if answer == nil {
		answer = func(r *XDSResponse) { _ = r.Ack() } // an error ends the stream, see Wait
	}
	conn, err := grpc.NewClient(addr,
		append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx,
		grpc.WaitForReady(true))
	if err != nil {
		cancel()
		_ = conn.Close()
		return nil, fmt.Errorf("opening a stream to %s: %w", addr, err)
	}
	x := &XDSClient{
		conn: conn, rpc: rpc, node: node, answer: answer, cancel: cancel, done: make(chan struct{}),
		resources: map[string]map[string]*discoveryv3.Resource{}, changed: make(chan struct{}),
	}
	go x.receive()
	return x, nil
}

// Close ends the stream.
func (x *XDSClient) Close() error {
	x.cancel()
	<-x.done
	return x.conn.Close()
}

// Ended is closed when the stream has ended. Err returns how.
func (x *XDSClient) Ended() <-chan struct{} { return x.done }

// Err returns how the stream ended; nil while it is open.
func (x *XDSClient) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Subscribe subscribes to resources of a type; no names means all.
func (x *XDSClient) Subscribe(typeURL string, names ...string) error {
	return x.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names})
}

// Send sends any request; the node is added. A stream that has ended is no error here: Err
// returns how it ended.
func (x *XDSClient) Send(req *discoveryv3.DeltaDiscoveryRequest) error {
	x.sending.Lock()
	defer x.sending.Unlock()
	req.Node = &corev3.Node{Id: x.node, Cluster: x.node}
	if err := x.rpc.Send(req); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Ack acknowledges the resources of the response.
func (r *XDSResponse) Ack() error {
	r.client.apply(r.DeltaDiscoveryResponse)
	return r.client.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
}

// Nack refuses the response; the client keeps what it has.
func (r *XDSResponse) Nack(text string) error {
	return r.client.Send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(),
		ErrorDetail: &status.Status{Code: int32(codes.InvalidArgument), Message: text},
	})
}

// Resources returns the acknowledged resources of a type that were not removed, by
// name.
func (x *XDSClient) Resources(typeURL string) map[string]*discoveryv3.Resource {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.resources[typeURL])
}

// Wait returns when ok accepts the resources of a type, or with an error when the
// stream or ctx ends before.
func (x *XDSClient) Wait(ctx context.Context, typeURL string, ok func(map[string]*discoveryv3.Resource) bool) error {
	for {
		x.mu.Lock()
		changed, err := x.changed, x.err
		have := maps.Clone(x.resources[typeURL])
		x.mu.Unlock()
		if ok(have) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", typeURL, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w, have %d resources", typeURL, ctx.Err(), len(have))
		}
	}
}

func (x *XDSClient) receive() {
	defer close(x.done)
	for {
		resp, err := x.rpc.Recv()
		if err != nil {
			x.mu.Lock()
			x.err = err
			x.signal()
			x.mu.Unlock()
			return
		}
		x.answer(&XDSResponse{resp, x})
	}
}

func (x *XDSClient) apply(resp *discoveryv3.DeltaDiscoveryResponse) {
	x.mu.Lock()
	defer x.mu.Unlock()
	have := x.resources[resp.GetTypeUrl()]
	if have == nil {
		have = map[string]*discoveryv3.Resource{}
		x.resources[resp.GetTypeUrl()] = have
	}
	for _, r := range resp.GetResources() {
		have[r.GetName()] = r
	}
	for _, name := range resp.GetRemovedResources() {
		delete(have, name)
	}
	x.signal()
}

// signal requires mu.
func (x *XDSClient) signal() {
	close(x.changed)
	x.changed = make(chan struct{})
}
