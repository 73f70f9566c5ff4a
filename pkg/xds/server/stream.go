package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

type deltaRPC = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer

// stream is one connected Envoy.
type stream struct {
	server *Server
	rpc    deltaRPC
	id     int64
	proxy  string
	// address is where the Envoy connected from.
	address string
	parent  string // see Have
	// loopback means that the Envoy requests listeners on the loopback only.
	loopback bool
	// files are what it has on its machine. Other goroutines read them with Server.mu.
	files snapshot.Files
	// own is the snapshot for this Envoy alone, made from common.
	common, own *snapshot.Snapshot
	log         *slog.Logger

	changed chan struct{} // capacity 1: the proxy has a new snapshot, or a wait has begun
	// replaced is closed when the known state of the Envoy becomes invalid, see
	// Server.Replace.
	replaced chan struct{}
	plan     *plan.Stream
	// foreign is its share of the unknown names.
	foreign share
	have    *snapshot.Snapshot // the last snapshot given to plan
	applied int64
	// reported means that the last progress in the registry contained obstacles.
	reported bool
	// waits are the waits whose goal this Envoy has not reached.
	waits map[*wait]struct{}
	live  atomic.Pointer[Have]

	mu    sync.Mutex
	joins []*wait // not yet in waits
}

func newStream(s *Server, rpc deltaRPC, proxy string) *stream {
	id := s.ids.Add(1)
	st := &stream{
		server: s, rpc: rpc, id: id, proxy: proxy, address: addressOf(rpc.Context()),
		log:     s.opts.Log.With("node", proxy, "stream", id),
		changed: make(chan struct{}, 1), replaced: make(chan struct{}),
		plan:    plan.NewStream(s.opts.Plan),
		foreign: share{of: &s.foreign},
		waits:   map[*wait]struct{}{},
	}
	st.wake()
	return st
}

// wake tells the stream to check for a new snapshot. It never blocks.
func (st *stream) wake() {
	select {
	case st.changed <- struct{}{}:
	default:
	}
}

// watch adds a wait for the stream's Envoy. It never blocks.
func (st *stream) watch(w *wait) {
	st.mu.Lock()
	st.joins = append(st.joins, w)
	st.mu.Unlock()
	st.wake()
}

// run is the stream's loop. It ends when the Envoy disconnects, or when the configuration
// is replaced by that of another database.
func (st *stream) run(first *discoveryv3.DeltaDiscoveryRequest) error {
	ctx, cancel := context.WithCancel(st.rpc.Context())
	requests := make(chan *discoveryv3.DeltaDiscoveryRequest)
	gone := make(chan error, 1)
	// This ends with the RPC, whose context gRPC cancels when run returns.
	go func() { gone <- st.receive(ctx, requests) }()
	defer cancel()

	if len(first.GetInitialResourceVersions()) > 0 {
		st.server.reports(st.proxy) // also before the first publish
	}
	pace := newPace()
	defer pace.timer.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var hear <-chan *discoveryv3.DeltaDiscoveryRequest // nil before the first publish, and while the client must wait
	for {
		select {
		case req := <-hear:
			if err := st.handle(req); err != nil {
				return err
			}
			if asksForMore(req) && pace.ask(st.isCheap(req), time.Now()) {
				hear = nil
			}
		case <-pace.timer.C:
			hear = requests
		case <-st.changed:
			// This comes first, so that no wait sees an older state.
			st.join()
			if snap := st.wanted(); snap != nil && snap != st.have {
				st.have = snap
				st.plan.Want(snap)
			}
			if first != nil && st.have != nil {
				if err := st.handle(first); err != nil {
					return err
				}
				first, hear = nil, requests
			}
		case <-timer.C:
		case <-st.replaced:
			return status.Error(codes.Aborted, "the database was restored from a backup: connect again with what you have")
		case err := <-gone:
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		wake, err := st.advance()
		if err != nil {
			return err
		}
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(time.Until(wake))
		}
	}
}

// wanted returns what the Envoy should have now, like snapshotOf.
func (st *stream) wanted() *snapshot.Snapshot {
	snap := st.server.snapshotOf(st.proxy)
	if snap == nil {
		return nil
	}
	if st.files != (snapshot.Files{}) {
		return st.withFiles(snap)
	}
	if !st.loopback {
		return snap
	}
	return snap.OnLoopback()
}

// withFiles returns the snapshot for an Envoy with files. It makes listeners again only if they changed.
func (st *stream) withFiles(snap *snapshot.Snapshot) *snapshot.Snapshot {
	switch {
	case snap == st.common:
		return st.own
	case st.common != nil && slices.Equal(snap.Listeners, st.common.Listeners):
		st.own = snap.WithListeners(st.own.Listeners)
	case st.loopback:
		st.own = snap.WithFiles(st.files).OnLoopback()
	default:
		st.own = snap.WithFiles(st.files)
	}
	st.common = snap
	return st.own
}

func (st *stream) receive(ctx context.Context, to chan<- *discoveryv3.DeltaDiscoveryRequest) error {
	for {
		req, err := st.rpc.Recv()
		if err != nil {
			return err
		}
		select {
		case to <- req:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// handle processes one request: an answer to a response, a change of subscriptions, or
// both.
func (st *stream) handle(req *discoveryv3.DeltaDiscoveryRequest) error {
	if err := checkNames(req); err != nil {
		return err
	}
	if nonce := req.GetResponseNonce(); nonce != "" {
		st.answer(nonce, req)
	}
	first := req.GetResponseNonce() == "" && len(req.GetResourceNamesUnsubscribe()) == 0
	if names := req.GetResourceNamesSubscribe(); first || len(names) > 0 {
		if len(req.GetInitialResourceVersions()) > 0 {
			st.server.reports(st.proxy)
		}
		st.plan.SetRoom(st.server.room(st.foreign.has, req.GetTypeUrl()))
		if !st.plan.Subscribe(req.GetTypeUrl(), names, req.GetInitialResourceVersions()) {
			return status.Error(codes.ResourceExhausted, "too many resources that the proxy does not have are requested")
		}
	}
	if names := req.GetResourceNamesUnsubscribe(); len(names) > 0 {
		st.plan.Unsubscribe(req.GetTypeUrl(), names)
	}
	return nil
}

// asksForMore reports whether a request is more than an answer.
func asksForMore(req *discoveryv3.DeltaDiscoveryRequest) bool {
	return req.GetResponseNonce() == "" || len(req.GetResourceNamesSubscribe()) > 0
}

// isCheap reports whether an Envoy may send many such requests: single requests for
// certificates that its clients need (missing ones are not kept), for the secrets of logins
// that its hosts name, and for the endpoints of its clusters.
func (st *stream) isCheap(req *discoveryv3.DeltaDiscoveryRequest) bool {
	if req.GetTypeUrl() == snapshot.EndpointType {
		return !slices.ContainsFunc(req.GetResourceNamesSubscribe(), func(name string) bool { return !st.plan.Serves(name) })
	}
	names := req.GetResourceNamesSubscribe()
	return req.GetTypeUrl() == snapshot.SecretType && !slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(name, "/") && name != snapshot.DefaultCertificate &&
			(st.have == nil || !st.have.HasSecret(name))
	})
}

func (st *stream) answer(nonce string, req *discoveryv3.DeltaDiscoveryRequest) {
	if detail := req.GetErrorDetail(); detail != nil {
		text := shorten(detail.GetMessage(), maxRefusal)
		if strings.Contains(text, cannotOpen) && st.files.Logs != "" {
			st.loseLogs()
		}
		if m, guilty := st.plan.Nack(nonce, text, time.Now()); m != nil {
			st.server.opts.Status.RecordNack(st.id, m.Type, toAnswer(m, text))
			st.log.Log(st.rpc.Context(), logLevel(st.server.quiet.refusals, st.address, slog.LevelWarn),
				"envoy refused configuration and keeps what it had", "type_url", m.Type, "rev", m.Revision,
				"resources", resourceNames(m), "guilty", guilty, "err", text)
		}
		return
	}
	if m := st.plan.Ack(nonce); m != nil {
		st.server.opts.Status.RecordAck(st.id, m.Type, toAnswer(m, ""))
	}
}

// advance sends what can safely be sent now. It returns when to check again.
func (st *stream) advance() (wake time.Time, err error) {
	if st.server.Held() != "" {
		return time.Time{}, nil // the end of the hold wakes the stream
	}
	messages, wake := st.plan.Next(time.Now())
	st.foreign.set(st.plan.Foreign())
	if st.plan.Unanswered() > maxUnanswered {
		return wake, status.Errorf(codes.ResourceExhausted, "more than %d messages were sent and not answered", maxUnanswered)
	}
	for _, m := range messages {
		if err := st.rpc.SendMsg(&response{m}); err != nil {
			return wake, fmt.Errorf("sending %s: %w", m.Type, err)
		}
		st.server.opts.Status.RecordSent(st.id, m.Type, toAnswer(&m, ""))
		st.log.Debug("response sent", "type_url", m.Type, "rev", m.Revision, "resources", len(m.Resources),
			"removed", len(m.Removed))
	}
	st.report()
	return wake, nil
}

// report passes the Envoy's progress to the registry and the waits.
func (st *stream) report() {
	for _, o := range st.plan.Overdue() {
		st.server.opts.Status.RecordOverdue(st.id, o.Type, o.Name)
		st.log.Warn("routes no longer wait for what is not ready", "type_url", o.Type, "resource", o.Name)
	}
	rev, ok := st.plan.Applied()
	waiting, refused := st.plan.Waiting(), st.plan.Refused()
	inTheWay := len(waiting)+len(refused) > 0
	if ok && rev != st.applied || inTheWay || st.reported {
		if ok && rev != st.applied {
			st.applied = rev
			st.log.Debug("revision applied", "rev", rev)
		}
		st.reported = inTheWay
		st.server.opts.Status.SetProgress(st.id, toProgress(st.applied, waiting, refused))
	}
	st.reportProgress()
	for w := range st.waits {
		switch lack, ok := st.plan.Reached(w.goals[st.proxy]); {
		case ok:
			delete(st.waits, w)
			w.noteReached(st)
		case w.hasEnded():
			delete(st.waits, w)
		default:
			w.noteLack(st, lack)
		}
	}
}

// join adds the waits that have begun.
func (st *stream) join() {
	st.mu.Lock()
	joins := st.joins
	st.joins = nil
	st.mu.Unlock()
	for _, w := range joins {
		st.waits[w] = struct{}{}
	}
}

// reportProgress records what the Envoy has, as soon as something is known.
func (st *stream) reportProgress() {
	hosts, known := st.plan.Hosts()
	refused := st.plan.RefusedListeners()
	if !known && len(refused) == 0 {
		return
	}
	last := st.live.Load()
	if last == nil || last.Snapshot != st.have || !slices.Equal(last.Hosts, hosts) ||
		!slices.Equal(last.Refused, refused) {
		st.live.Store(&Have{Envoy: st.address, Hosts: hosts, Refused: refused, Snapshot: st.have, Parent: st.parent})
	}
}

func toProgress(applied int64, waiting []plan.Wait, refused []plan.Refusal) gatestatus.Progress {
	p := gatestatus.Progress{Applied: applied}
	for _, w := range waiting {
		wait := gatestatus.Wait{Host: w.Host, Object: toKey(w.Object), Since: w.Since, Until: w.Until}
		for _, list := range []struct {
			from []plan.Awaited
			to   *[]gatestatus.Awaited
		}{{w.Clusters, &wait.Clusters}, {w.Secrets, &wait.Secrets}, {w.Providers, &wait.Providers}} {
			for _, a := range list.from {
				*list.to = append(*list.to, gatestatus.Awaited{Name: a.Name, Objects: toKeys(a.Objects)})
			}
		}
		p.Waiting = append(p.Waiting, wait)
	}
	for _, r := range refused {
		p.Refused = append(p.Refused, gatestatus.Refusal{
			TypeURL: r.Type, Resource: r.Resource, Version: r.Version, Objects: toKeys(r.Objects), Revision: r.Revision,
			Text: r.Text, At: r.At,
		})
	}
	return p
}

func toKeys(objects []snapshot.ObjectRef) []model.Key {
	var keys []model.Key
	for _, o := range objects {
		keys = append(keys, toKey(o))
	}
	return keys
}

func toKey(o snapshot.ObjectRef) model.Key { return model.NewKey(model.Kind(o.Kind), o.Name) }

func toAnswer(m *plan.Message, text string) gatestatus.Answer {
	named := m.Resources[:min(gatestatus.MaxNamed, len(m.Resources))]
	a := gatestatus.Answer{Revision: m.Revision, More: len(m.Resources) - len(named), At: time.Now(), Text: text}
	for _, r := range named {
		a.Resources = append(a.Resources, gatestatus.Resource{Name: r.Name, Version: r.Version})
	}
	return a
}

// resourceNames returns the names in a message for a log line, at most ten.
func resourceNames(m *plan.Message) []string {
	const most = 10
	var names []string
	for _, r := range m.Resources[:min(most, len(m.Resources))] {
		names = append(names, r.Name)
	}
	if more := len(m.Resources) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

func formatVersion(major, minor, patch uint32) string {
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}
