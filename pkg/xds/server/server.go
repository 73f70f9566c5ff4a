package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Options of a Server. Status and Log are required.
type Options struct {
	Plan   plan.Options
	Status *gatestatus.Registry
	Log    *slog.Logger
	// Own is the proxy whose Envoy this program runs itself, so that an Envoy is sure to
	// connect; empty means none.
	Own string
	// Elsewhere reports whether an Envoy of a proxy is connected to another replica. It
	// returns a channel that is closed when that may have changed. Nil means that there is
	// no other replica.
	Elsewhere func(proxy string) (has bool, moved <-chan struct{})
	// Failing is called with the clusters for which an Envoy reports failed requests, and
	// with the Envoy's Parent; nil means that it is not called. The Envoy's next report
	// waits for the call.
	Failing func(ctx context.Context, parent string, clusters []string)
	// Held is why no Envoy may be answered before there is a configuration; empty means
	// that there is no known reason. See hold.go.
	Held string
	// AllowEmpty means that a database without a configuration is empty on purpose.
	AllowEmpty bool
	// Configured reports whether what was published last is a configuration; nil means that
	// everything after revision 0 is.
	Configured func() bool
	// FirstWithin is how long a client may take to send its first request; 0 means 30 s.
	FirstWithin time.Duration
	// Authenticate identifies a client; nil means that the port is open to all.
	Authenticate Authenticate
	// Refusals counts and logs refused clients; nil means a new Refusals.
	Refusals *Refusals
}

// Server is the aggregated discovery service. Use New.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	loadv3.UnimplementedLoadReportingServiceServer

	opts  Options
	ids   atomic.Int64
	open  atomic.Int64 // streams
	quiet quiet
	// refusals are refusals of clients that are not allowed.
	refusals *Refusals
	// foreign counts the unknown names that are kept for clients.
	foreign atomic.Int64
	// requests counts what Envoys report.
	requests *requests

	mu            sync.Mutex
	revision      int64
	published     bool
	held          string // see Held
	reportedProxy string // a proxy whose Envoy came with resources
	snapshots     map[string]*snapshot.Snapshot
	streams       map[*stream]struct{}
	waits         map[string]map[*wait]struct{} // by proxy
	// coming contains, for proxies without an Envoy, until when one is expected to
	// reconnect.
	coming    map[string]time.Time
	reporters map[string]*reporter // by address

	limits *limits // nil before they are known
	// limitsRefused means that an engine refused the limits.
	limitsRefused bool
	engines       map[*engine]struct{}
	enginesComing time.Time     // until when an engine is expected to reconnect while none is connected
	moved         chan struct{} // closed, and replaced, when an engine or the limits change
}

// New returns a server that answers nothing before Publish is called.
func New(opts Options) *Server {
	if opts.Refusals == nil {
		opts.Refusals = NewRefusals(opts.Log)
	}
	s := &Server{
		opts: opts, held: opts.Held, snapshots: map[string]*snapshot.Snapshot{}, streams: map[*stream]struct{}{},
		waits: map[string]map[*wait]struct{}{}, coming: map[string]time.Time{}, engines: map[*engine]struct{}{},
		moved: make(chan struct{}), quiet: newQuiet(), refusals: opts.Refusals, reporters: map[string]*reporter{},
	}
	s.requests = &requests{snapshot: s.Snapshot, counts: map[pair]*counted{}}
	return s
}

// GRPC returns a gRPC server that serves s, with more options such as the credentials of
// its connections. Its limits fit Envoys with large configurations, and it detects dead
// connections.
func (s *Server) GRPC(more ...grpc.ServerOption) *grpc.Server {
	g := grpc.NewServer(append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxConcurrentStreams(maxConnStreams),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.ChainStreamInterceptor(s.authenticateStream, s.limitStreams),
		grpc.UnaryInterceptor(s.authenticateCall),
		grpc.UnknownServiceHandler(answerUnknown),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: 30 * time.Second, Timeout: 10 * time.Second,
			// An Envoy has no use for a connection without a stream.
			MaxConnectionIdle: time.Minute,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}, more...)...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	loadv3.RegisterLoadReportingServiceServer(g, s)
	return g
}

// Publish sets the snapshots of the proxies that changed; nil means that the proxy no
// longer exists. The first call must contain every proxy.
func (s *Server) Publish(revision int64, changed map[string]*snapshot.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(revision, changed)
}

// Replace is Publish after revision numbers have started again. What is known about each
// Envoy has old numbers, so Replace ends the Envoy's stream. The Envoy reconnects, reports
// what it has, and receives the differences.
func (s *Server) Replace(revision int64, changed map[string]*snapshot.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		close(st.replaced)
		delete(s.streams, st)
		s.coming[st.proxy] = time.Now().Add(reconnectTime)
	}
	s.publish(revision, changed)
}

// publish is Publish for callers that hold mu.
func (s *Server) publish(revision int64, changed map[string]*snapshot.Snapshot) {
	first := !s.published
	s.revision, s.published = revision, true
	if first && s.held != "" {
		s.logHold()
	}
	released := s.updateHold()
	for proxy, snap := range changed {
		if snap == nil {
			delete(s.snapshots, proxy)
			delete(s.coming, proxy)
			continue
		}
		s.snapshots[proxy] = snap
		if first && !s.has(proxy) {
			// The proxy existed before this process, and so did its Envoys.
			s.coming[proxy] = time.Now().Add(reconnectTime)
		}
	}
	for st := range s.streams {
		if _, ok := changed[st.proxy]; ok || first || released {
			st.wake()
		}
	}
	for proxy := range changed {
		s.tellFiles(proxy)
	}
	for e := range s.engines {
		if released {
			e.wake()
		}
	}
}

// snapshotOf returns what the proxy should have now: nil before the first publish and
// during a hold, and an empty snapshot for an unknown proxy.
func (s *Server) snapshotOf(proxy string) *snapshot.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.published || s.held != "" {
		return nil
	}
	if snap := s.snapshots[proxy]; snap != nil {
		return snap
	}
	return snapshot.Empty(s.revision)
}

// Have is what one connected Envoy has.
type Have struct {
	// Envoy is the address from which it connected.
	Envoy string
	// Hosts are the hosts of the acknowledged route configuration, sorted by name; nil
	// while that is unknown.
	Hosts []*snapshot.Host
	// Refused are the listeners that the Envoy refused.
	Refused []plan.RefusedListener
	// Snapshot is what the Envoy should have.
	Snapshot *snapshot.Snapshot
	// Parent is the program that started the Envoy, as the Envoy reports it; mostly empty.
	Parent string
}

// Have returns what the connected Envoys of a proxy have, sorted by address.
func (s *Server) Have(proxy string) []Have {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Have
	for st := range s.streams {
		if have := st.live.Load(); st.proxy == proxy && have != nil {
			list = append(list, *have)
		}
	}
	slices.SortFunc(list, func(a, b Have) int { return cmp.Compare(a.Envoy, b.Envoy) })
	return list
}

// addStream registers a stream. removeStream removes it.
func (s *Server) addStream(st *stream) (proxyExists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
	s.tellFiles(st.proxy)
	delete(s.coming, st.proxy)
	for w := range s.waits[st.proxy] {
		w.join(st)
		st.watch(w)
	}
	return s.snapshots[st.proxy] != nil
}

func (s *Server) removeStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
	s.tellFiles(st.proxy)
	if s.has(st.proxy) {
		for w := range s.waits[st.proxy] {
			w.leave(st)
		}
		return
	}
	if s.snapshots[st.proxy] != nil {
		s.coming[st.proxy] = time.Now().Add(reconnectTime)
	}
	until, expected := s.expectsEnvoy(st.proxy)
	for w := range s.waits[st.proxy] {
		w.leaveLast(st.proxy, until, expected)
	}
}

// has reports whether an Envoy of the proxy is connected. The caller holds mu.
func (s *Server) has(proxy string) bool {
	for st := range s.streams {
		if st.proxy == proxy {
			return true
		}
	}
	return false
}

// expectsEnvoy reports whether an Envoy is sure or likely to connect for a proxy without
// one, and until when; the zero time means forever. The caller holds mu.
func (s *Server) expectsEnvoy(proxy string) (until time.Time, ok bool) {
	if s.opts.Own != "" && proxy == s.opts.Own {
		return time.Time{}, true
	}
	until, ok = s.coming[proxy]
	return until, ok
}

// DeltaAggregatedResources serves one Envoy until it disconnects.
func (s *Server) DeltaAggregatedResources(
	rpc discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	first, err := firstOf(rpc.Context(), rpc.Recv, s.opts.FirstWithin)
	if err != nil {
		return err
	}
	node := first.GetNode()
	if err := nodeID(node.GetId()); err != nil {
		s.opts.Log.Log(rpc.Context(), logLevel(s.quiet.refusals, addressOf(rpc.Context()), slog.LevelWarn), "envoy refused",
			"address", addressOf(rpc.Context()), "node", shorten(node.GetId(), maxName), "err", err)
		return err
	}
	identity := identityOf(rpc.Context())
	if err := identity.mayUse(node.GetId()); err != nil {
		return s.check(rpc.Context(), err, "node", node.GetId(), "identity", identity.Name)
	}
	st := newStream(s, rpc, node.GetId())
	st.parent, st.loopback, st.files = parentOf(node), wantsLoopback(node), filesOf(node)
	exists := s.addStream(st)
	s.opts.Status.Connect(gatestatus.Envoy{
		ID: st.id, Proxy: st.proxy, Address: st.address, Version: versionOf(node), Connected: time.Now(),
		Identity: identity.Name, Instance: instanceOf(node),
	})
	loud := logLevel(s.quiet.comings, st.address, slog.LevelInfo)
	st.log.Log(rpc.Context(), loud, "envoy connected", "version", versionOf(node), "address", st.address,
		"proxy_exists", exists)
	defer func() {
		s.removeStream(st)
		st.foreign.set(0)
		s.opts.Status.Disconnect(st.id)
		st.log.Log(context.WithoutCancel(rpc.Context()), loud, "envoy disconnected")
	}()
	err = st.run(first)
	if code := status.Code(err); code == codes.InvalidArgument || code == codes.ResourceExhausted {
		st.log.Log(context.WithoutCancel(rpc.Context()), logLevel(s.quiet.refusals, st.address, slog.LevelWarn),
			"envoy cut off", "address", st.address, "err", err)
	}
	return err
}

func addressOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// parentOf returns the program that started the Envoy, see envoy.Params.
func parentOf(node *corev3.Node) string {
	return shorten(node.GetMetadata().GetFields()["gatehouse_parent"].GetStringValue(), maxVersion)
}

// instanceOf returns the name of the Envoy among those of its proxy, see envoy.Params.
func instanceOf(node *corev3.Node) string {
	return shorten(node.GetMetadata().GetFields()["gatehouse_instance"].GetStringValue(), maxVersion)
}

// wantsLoopback reports whether the Envoy requests listeners on the loopback only, see
// envoy.Params. The request can only reduce who reaches it.
func wantsLoopback(node *corev3.Node) bool {
	return node.GetMetadata().GetFields()["gatehouse_listeners"].GetStringValue() == "loopback"
}

func versionOf(node *corev3.Node) string {
	v := node.GetUserAgentBuildVersion().GetVersion()
	if v == nil {
		return ""
	}
	return formatVersion(v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
}
