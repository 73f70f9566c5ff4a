package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
)

// reconnectTime is how long to expect an Envoy to reconnect after its stream broke or
// the control plane restarted. Envoy tries after half a second, then less and less
// often.
const reconnectTime = 5 * time.Second

// Wait returns when at least one Envoy is connected to each of the proxies, and all of
// them have reached the goal of their proxy. If ctx ends earlier, or if more time cannot
// help, it returns what is missing: refusals, and proxies without an Envoy that is sure
// to connect. A goal is reached only with proof: the Envoy acknowledged it, or read it
// before something that it acknowledged.
func (s *Server) Wait(ctx context.Context, goals map[string]plan.Goal) []gatestatus.Lag {
	w := s.startWait(goals)
	if w == nil {
		return nil
	}
	defer s.endWait(w)
	alarm := time.NewTimer(w.alarmDelay())
	defer alarm.Stop()
	for {
		moved := s.lookElsewhere(w)
		select {
		case <-moved:
		case <-w.done:
			return w.left
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.lags()
		case <-w.gone:
			alarm.Reset(w.alarmDelay())
		case <-alarm.C:
			w.settle()
			alarm.Reset(w.alarmDelay())
		}
	}
}

// lookElsewhere stops waiting for Envoys that have connected to another replica, which
// waits for them. It returns a channel that is closed when to check again.
func (s *Server) lookElsewhere(w *wait) (moved <-chan struct{}) {
	if s.opts.Elsewhere == nil {
		return nil
	}
	w.mu.Lock()
	maps.DeleteFunc(w.coming, func(proxy string, until time.Time) (has bool) {
		if w.missing[proxy] == nil && !until.IsZero() {
			has, moved = s.opts.Elsewhere(proxy)
		}
		return has
	})
	w.mu.Unlock()
	w.settle()
	return moved
}

// wait is one call of Wait. mu guards its fields. Streams report their Envoy's progress
// to it and never wait for it.
type wait struct {
	goals map[string]plan.Goal
	done  chan struct{}
	gone  chan struct{} // the last Envoy of a proxy disconnected

	mu sync.Mutex
	// coming contains, for proxies without an Envoy, until when to wait for one; the
	// zero time means forever.
	coming map[string]time.Time
	// missing are the connected Envoys that have not reached the goal, by proxy. A proxy
	// without Envoys has no entry. A proxy whose Envoys have all reached it has an empty
	// entry.
	missing map[string]map[*stream]plan.Lack
	closed  bool // done is closed
	over    bool // Wait has returned
	// left is what was missing when done was closed. An Envoy that connects later does
	// not count.
	left []gatestatus.Lag
}

func (s *Server) startWait(goals map[string]plan.Goal) *wait {
	if len(goals) == 0 {
		return nil
	}
	w := &wait{
		goals: maps.Clone(goals), done: make(chan struct{}), gone: make(chan struct{}, 1),
		coming: map[string]time.Time{}, missing: map[string]map[*stream]plan.Lack{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for proxy, goal := range goals {
		if s.waits[proxy] == nil {
			s.waits[proxy] = map[*wait]struct{}{}
		}
		s.waits[proxy][w] = struct{}{}
		if until, ok := s.expectsEnvoy(proxy); ok {
			w.coming[proxy] = until
		}
		if snap := s.snapshots[proxy]; snap != nil && snap.Revision < goal.Revision {
			// The change did not affect this proxy.
			goal.Revision = snap.Revision
			w.goals[proxy] = goal
		}
	}
	for st := range s.streams {
		if _, ok := goals[st.proxy]; ok {
			w.join(st)
			st.watch(w)
		}
	}
	for proxy := range goals {
		if s.snapshots[proxy] == nil && w.missing[proxy] == nil {
			// The proxy was deleted and has no Envoy.
			w.missing[proxy] = map[*stream]plan.Lack{}
		}
	}
	w.settle()
	return w
}

func (s *Server) endWait(w *wait) {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for proxy := range w.goals {
		delete(s.waits[proxy], w)
		if len(s.waits[proxy]) == 0 {
			delete(s.waits, proxy)
		}
	}
}

// join adds an Envoy to the wait.
func (w *wait) join(st *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing[st.proxy] == nil {
		w.missing[st.proxy] = map[*stream]plan.Lack{}
	}
	w.missing[st.proxy][st] = plan.Lack{}
}

// hasEnded reports whether the wait is over.
func (w *wait) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// noteLack records what an Envoy still lacks.
func (w *wait) noteLack(st *stream, lack plan.Lack) {
	w.mu.Lock()
	w.missing[st.proxy][st] = lack
	w.mu.Unlock()
	if lack.Refusal != nil {
		w.settle()
	}
}

// noteReached records that an Envoy has reached the goal.
func (w *wait) noteReached(st *stream) {
	w.mu.Lock()
	delete(w.missing[st.proxy], st)
	w.mu.Unlock()
	w.settle()
}

// leave removes an Envoy that disconnected.
func (w *wait) leave(st *stream) {
	w.mu.Lock()
	delete(w.missing[st.proxy], st)
	w.mu.Unlock()
	w.settle()
}

// leaveLast removes the last Envoy of a proxy. If another one is expected, the wait
// continues until then.
func (w *wait) leaveLast(proxy string, until time.Time, expected bool) {
	w.mu.Lock()
	delete(w.missing, proxy)
	delete(w.coming, proxy)
	if expected {
		w.coming[proxy] = until
	}
	w.mu.Unlock()
	select {
	case w.gone <- struct{}{}:
	default:
	}
	w.settle()
}

// alarmDelay returns when to settle without a signal.
func (w *wait) alarmDelay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	after := time.Hour
	for proxy, until := range w.coming {
		if d := time.Until(until); w.missing[proxy] == nil && d > 0 {
			after = min(after, d)
		}
	}
	return after
}

// mayCome reports whether to wait for an Envoy of a proxy without one. The caller holds
// mu.
func (w *wait) mayCome(proxy string) bool {
	until, ok := w.coming[proxy]
	return ok && (until.IsZero() || time.Now().Before(until))
}

// settle ends the wait if more time cannot help.
func (w *wait) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	for proxy := range w.goals {
		if w.missing[proxy] == nil && w.mayCome(proxy) {
			return
		}
	}
	for _, envoys := range w.missing {
		for _, lack := range envoys {
			if lack.Refusal == nil {
				return
			}
		}
	}
	w.closed, w.left = true, w.lags()
	close(w.done)
}

// lags returns what is missing. The caller holds mu.
func (w *wait) lags() []gatestatus.Lag {
	var list []gatestatus.Lag
	for _, proxy := range slices.Sorted(maps.Keys(w.goals)) {
		envoys, connected := w.missing[proxy]
		if !connected {
			list = append(list, gatestatus.Lag{
				Proxy: proxy, Reason: gatestatus.NotConnected,
				Message: fmt.Sprintf("no Envoy whose node id is %q is connected", proxy),
			})
		}
		for st, lack := range envoys {
			lag := lagOf(lack)
			lag.Proxy, lag.Envoy = proxy, st.address
			list = append(list, lag)
		}
	}
	slices.SortFunc(list, func(a, b gatestatus.Lag) int {
		return cmp.Or(cmp.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Envoy, b.Envoy))
	})
	return list
}

func lagOf(lack plan.Lack) gatestatus.Lag {
	switch {
	case lack.Refusal != nil:
		return gatestatus.Lag{
			Reason:  gatestatus.Refused,
			Message: fmt.Sprintf("Envoy refused %s: %s", lack.Refusal.Resource, lack.Refusal.Text),
		}
	case lack.Wait != nil && lack.Wait.Until.IsZero():
		return gatestatus.Lag{
			Reason:  gatestatus.Refused,
			Message: "Envoy refused what service " + lack.Wait.Host + " needs: " + awaitedBy(lack.Wait),
		}
	case lack.Wait != nil:
		return gatestatus.Lag{
			Reason: gatestatus.Waiting,
			Message: fmt.Sprintf("service %s waits for %s, until %s at the latest",
				lack.Wait.Host, awaitedBy(lack.Wait), lack.Wait.Until.UTC().Format("15:04:05")),
		}
	}
	return gatestatus.Lag{Reason: gatestatus.Slow, Message: "Envoy has not answered yet"}
}

// awaitedBy describes what a host waits for.
func awaitedBy(w *plan.Wait) string {
	var parts []string
	for _, list := range []struct {
		what    string
		awaited []plan.Awaited
	}{{"cluster", w.Clusters}, {"secret", w.Secrets}, {"jwt provider", w.Providers}} {
		names := make([]string, len(list.awaited))
		for i, a := range list.awaited {
			names[i] = a.Name
		}
		if len(names) > 0 {
			parts = append(parts, list.what+" "+strings.Join(names, ", "))
		}
	}
	return strings.Join(parts, " and ")
}
