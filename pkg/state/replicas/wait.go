package replicas

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Mail is what replicas ask and answer each other.
type Mail struct {
	Asks    []Ask    `json:"asks,omitempty"`
	Answers []Answer `json:"answers,omitempty"`
}

// Ask asks every other replica to wait for its own Envoys. It is valid until it is
// withdrawn.
type Ask struct {
	// ID is unique among all replicas.
	ID       string `json:"id"`
	Revision int64  `json:"revision"`
	// Changed is what was written. None means that there was too much to list: the
	// others wait until their Envoys have everything.
	Changed []model.Key `json:"changed,omitempty"`
	// WithinMS is how long the wait may take when it begins, in milliseconds.
	WithinMS int64 `json:"within_ms"`

	// fresh is the read that the wait needs; see Hub.asked.
	fresh int64
}

// Answer reports what lags at the end of a wait.
type Answer struct {
	ID   string       `json:"id"`
	Lags []status.Lag `json:"lags,omitempty"`
}

const (
	// maxChanged bounds the changed objects in an Ask, maxAsks the asks of one replica
	// that are answered at a time, maxLags the Envoys in an answer.
	maxChanged, maxAsks, maxLags = 1000, 256, 100
	// answerTime is how much earlier a wait of another replica ends, so that its answer
	// arrives in time.
	answerTime = 500 * time.Millisecond
)

// Wait returns when the Envoys of all replicas have a revision, as Options.Wait does for
// this replica's Envoys, or when ctx ends. It returns what lags. A replica that is not
// heard lags. changed is not empty. proxies are the proxies that the change reaches; none
// means that they are not known.
func (h *Hub) Wait(ctx context.Context, revision int64, changed []model.Key, proxies []string) []status.Lag {
	lags := h.waitOnce(ctx, revision, changed, proxies)
	if ctx.Err() == nil && slices.ContainsFunc(lags, h.hasCome) {
		lags = h.waitOnce(ctx, revision, changed, proxies) // the Envoy was moving between replicas
	}
	return lags
}

// hasCome reports whether a proxy that had no Envoy has one.
func (h *Hub) hasCome(l status.Lag) bool {
	if l.Reason != status.NotConnected {
		return false
	}
	has, _ := h.Has(l.Proxy)
	return has || slices.ContainsFunc(h.opts.Registry.Envoys(), func(e status.Envoy) bool { return e.Proxy == l.Proxy })
}

// Has reports whether another replica that is heard has an Envoy of a proxy, and returns
// a channel that is closed when that may have changed.
func (h *Hub) Has(proxy string) (has bool, moved <-chan struct{}) {
	moved = h.Moved()
	return slices.ContainsFunc(h.Others(), func(o Other) bool { return !o.Unheard && o.Has(proxy) }), moved
}

func (h *Hub) waitOnce(ctx context.Context, revision int64, changed []model.Key, proxies []string) []status.Lag {
	here := make(chan []status.Lag, 1)
	go func() { here <- h.opts.Wait(ctx, revision, changed) }()
	id := h.ask(ctx, revision, changed)
	defer h.withdraw(id)
	// An Envoy that comes here from a replica that was killed shows only later that it was.
	again := time.NewTicker(h.pace.Publish)
	defer again.Stop()
	var own []status.Lag
	waiting := true
	for {
		lags, open, moved := h.answersTo(id, proxies)
		if !waiting && !open {
			return join(own, lags)
		}
		select {
		case own = <-here:
			waiting = false
		case <-moved:
		case <-again.C:
			if open {
				wake(h.refresh)
			}
		case <-ctx.Done():
			if waiting {
				own = <-here // it ends with ctx, too
			}
			lags, _, _ = h.answersTo(id, proxies)
			return join(own, lags)
		}
	}
}

// ask posts an ask and requests a current read of the board.
func (h *Hub) ask(ctx context.Context, revision int64, changed []model.Key) (id string) {
	if len(changed) > maxChanged {
		changed = nil
	}
	within := 10 * time.Minute
	if until, ok := ctx.Deadline(); ok {
		within = time.Until(until)
	}
	h.mu.Lock()
	h.count++
	h.asked++
	id = h.opts.Replica + "#" + strconv.FormatInt(h.count, 10)
	h.asks[id] = Ask{ID: id, Revision: revision, Changed: changed, WithinMS: within.Milliseconds(), fresh: h.asked}
	alone := len(h.others) == 0
	h.mu.Unlock()
	if !alone {
		wake(h.mail)
	}
	wake(h.refresh)
	return id
}

// withdraw removes an ask. The others learn of it with the next post.
func (h *Hub) withdraw(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.asks, id)
}

// wake never blocks.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// answersTo returns the answers of the others to an ask, whether more may follow with
// time, and a channel that is closed when to look again.
func (h *Hub) answersTo(id string, proxies []string) (lags [][]status.Lag, open bool, moved <-chan struct{}) {
	silent := map[string]Other{}
	for _, o := range h.Others() {
		if o.Unheard {
			silent[o.Replica] = o
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	moved = h.moved
	if h.read < h.asks[id].fresh {
		// A replica may have joined that is not known here.
		return [][]status.Lag{{{
			Reason: status.Unheard, Message: "the board of the replicas cannot be read: " +
				"the state of the Envoys of other replicas is unknown",
		}}}, true, moved
	}
	for name, o := range h.others {
		was, unheard := silent[name]
		i := slices.IndexFunc(o.mail.Answers, func(a Answer) bool { return a.ID == id })
		switch {
		case i >= 0:
			lags = append(lags, of(name, o.mail.Answers[i].Lags))
		case unheard && was.isIrrelevant(proxies): // as if it did not exist
		case unheard:
			lags = append(lags, of(name, []status.Lag{{Reason: status.Unheard, Message: was.UnheardMessage()}}))
		default:
			open = true
			lags = append(lags, of(name, []status.Lag{{
				Reason: status.Slow, Message: fmt.Sprintf("replica %s has not reported yet what its Envoys have", name),
			}}))
		}
	}
	return lags, open, moved
}

// of sets the replica of some lags.
func of(replica string, lags []status.Lag) []status.Lag {
	lags = slices.Clone(lags)
	for i := range lags {
		lags[i].Replica = replica
	}
	return lags
}

// join joins the lags here and at the others. A proxy lacks an Envoy if none is
// connected to any replica.
func join(own []status.Lag, others [][]status.Lag) []status.Lag {
	heard, lacking := 1, map[string]int{}
	var list, missing []status.Lag
	for i, lags := range append([][]status.Lag{own}, others...) {
		unknown := false
		for _, l := range lags {
			switch {
			case l.Reason != status.NotConnected:
				list = append(list, l)
				unknown = unknown || l.Envoy == "" && l.Proxy == ""
				continue
			case lacking[l.Proxy] == 0:
				l.Replica = ""
				missing = append(missing, l)
			}
			lacking[l.Proxy]++
		}
		if i > 0 && !unknown {
			heard++
		}
	}
	for _, l := range missing {
		if lacking[l.Proxy] == heard {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b status.Lag) int {
		return cmp.Or(cmp.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Envoy, b.Envoy))
	})
	return list
}

// mailNow returns the mail to post now. It omits answers to withdrawn asks.
func (h *Hub) mailNow() Mail {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := map[string]bool{}
	for _, o := range h.others {
		for _, a := range o.mail.Asks {
			open[a.ID] = true
		}
	}
	var m Mail
	for _, a := range h.asks {
		m.Asks = append(m.Asks, a)
	}
	for id, a := range h.answers {
		if open[id] {
			m.Answers = append(m.Answers, a)
		} else {
			delete(h.answers, id)
		}
	}
	slices.SortFunc(m.Asks, func(a, b Ask) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(m.Answers, func(a, b Answer) int { return cmp.Compare(a.ID, b.ID) })
	return m
}

// runAsks begins the waits that others ask for, and ends waits that are no longer
// needed.
func (h *Hub) runAsks(ctx context.Context) {
	if h.opts.Wait == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	open := map[string]bool{}
	for _, o := range h.others {
		for _, a := range o.mail.Asks[:min(maxAsks, len(o.mail.Asks))] {
			open[a.ID] = true
			if _, answered := h.answers[a.ID]; !answered && h.running[a.ID] == nil {
				h.runAsk(ctx, a)
			}
		}
	}
	for id, cancel := range h.running {
		if !open[id] {
			cancel()
			delete(h.running, id)
		}
	}
}

// runAsk answers an ask when the Envoys of this replica have the revision. It requires
// mu.
func (h *Hub) runAsk(ctx context.Context, a Ask) {
	within := time.Duration(a.WithinMS) * time.Millisecond
	within -= min(answerTime, within/2)
	ctx, cancel := context.WithTimeout(ctx, within)
	h.running[a.ID] = cancel
	h.waits.Go(func() {
		defer cancel()
		lags := h.opts.Wait(ctx, a.Revision, a.Changed)
		if more := len(lags) - maxLags; more > 0 {
			lags = append(lags[:maxLags:maxLags],
				status.Lag{Reason: status.Slow, Message: fmt.Sprintf("%d more Envoys lag", more)})
		}
		for i := range lags {
			lags[i].Message = shorten(lags[i].Message)
		}
		h.mu.Lock()
		h.answers[a.ID] = Answer{a.ID, lags}
		h.mu.Unlock()
		wake(h.mail)
	})
}
