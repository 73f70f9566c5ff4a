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

	gatestatus "github.com/gatehouse-gateway/gatehouse/pkg/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
)

// reconnectTime is how long an Envoy may take to come back to a stream that
// broke, or to a control plane that was started again. It tries after half a
// second, then less and less often.
const reconnectTime = 5 * time.Second

// Wait returns when every connected Envoy of the proxies has reached the goal
// of its proxy, and at least one is connected to each. When ctx ends before
// that, or nothing is in the way that time could change, it returns what is:
// refusals, and proxies without an Envoy of which none is sure to come. What it
// waits for is proven: acknowledged, or read before something acknowledged.
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

// lookElsewhere gives up waiting for Envoys that have connected to another replica: that
// one waits for them. It returns what is closed when to look again.
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

// wait is one call of Wait. Its fields are under mu; a stream tells it how far
// its Envoy is, and never waits for it.
type wait struct {
	goals map[string]plan.Goal
	done  chan struct{}
	gone  chan struct{} // the last Envoy of a proxy went away

	mu sync.Mutex
	// coming says for a proxy without an Envoy until when one is waited for; the
	// zero time is for ever.
	coming map[string]time.Time
	// missing are the connected Envoys that are not there yet, by proxy; a
	// proxy without any has no entry, and one in which all are, an empty one.
	missing map[string]map[*stream]plan.Lack
	closed  bool // done is
	over    bool // Wait has returned
	// left is what lagged when done was closed. An Envoy that connects after
	// that does not count.
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
			// The change made nothing different for this proxy.
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
			// It was deleted, and nobody is there to notice.
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

// join counts an Envoy in.
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

// noteLack notes what stands in an Envoy's way.
func (w *wait) noteLack(st *stream, lack plan.Lack) {
	w.mu.Lock()
	w.missing[st.proxy][st] = lack
	w.mu.Unlock()
	if lack.Refusal != nil {
		w.settle()
	}
}

// noteReached counts an Envoy as done.
func (w *wait) noteReached(st *stream) {
	w.mu.Lock()
	delete(w.missing[st.proxy], st)
	w.mu.Unlock()
	w.settle()
}

// leave counts an Envoy out that went away.
func (w *wait) leave(st *stream) {
	w.mu.Lock()
	delete(w.missing[st.proxy], st)
	w.mu.Unlock()
	w.settle()
}

// leaveLast counts the last Envoy of a proxy out. Where one is expected, it is
// waited for until then.
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

// alarmDelay returns after what time to settle without a signal.
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

// mayCome reports whether to wait for an Envoy of a proxy that has none. It
// needs mu.
func (w *wait) mayCome(proxy string) bool {
	until, ok := w.coming[proxy]
	return ok && (until.IsZero() || time.Now().Before(until))
}

// settle ends the wait when nothing is left that time could bring.
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

// lags needs mu.
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

// awaitedBy names what a host waits for.
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
