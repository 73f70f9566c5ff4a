package kube

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// The wait after a failed request to the API server, which doubles. All kinds together send about two requests a second
// while it does not answer.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 4 * time.Second
	// missedRetry is the wait for a kind that the API server need not have.
	missedRetry = 10 * time.Second
)

// reader requests the objects of a kind, and repeats a request until it is answered. An informer that saw each failure
// would wait up to a minute, and list everything again.
type reader struct {
	kind   kind
	inner  toolscache.ListerWatcherWithContext
	faults *faults
}

func (r *reader) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return again(ctx, r, func() (runtime.Object, error) { return r.inner.ListWithContext(ctx, o) })
}

func (r *reader) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return again(ctx, r, func() (watch.Interface, error) { return r.inner.WatchWithContext(ctx, o) })
}

// again repeats a request until it is answered, or until an error that the informer must see.
func again[T any](ctx context.Context, r *reader, ask func() (T, error)) (T, error) {
	delay := firstRetry
	for {
		answer, err := ask()
		if err == nil {
			r.faults.set(r, nil)
			return answer, nil
		}
		if ctx.Err() != nil || isForInformer(err) {
			return answer, err
		}
		now := fault{r.kind, err}
		r.faults.set(r, &now)
		if r.kind.isMissed(now) {
			delay = missedRetry
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(delay/2 + rand.N(delay/2)): //nolint:gosec // nothing secret
		}
		if delay = min(2*delay, lastRetry); r.kind.isMissed(now) {
			delay = firstRetry
		}
	}
}

// isForInformer reports whether an error means that the next request must be a different one.
func isForInformer(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// fault is why a kind cannot be read.
type fault struct {
	kind kind
	err  error
}

// isDenied reports whether the API server has answered and the kind cannot be read: the server does not have the kind,
// or this process has no permission.
func (f fault) isDenied() bool {
	return apierrors.IsForbidden(f.err) || apierrors.IsUnauthorized(f.err) || apierrors.IsNotFound(f.err)
}

// isMissed reports whether a kind is one that a cluster need not have, and cannot be read.
func (k kind) isMissed(f fault) bool { return k.optional && f.isDenied() }

// sentence says what is wrong and what to do.
func (f fault) sentence() string {
	what := f.kind.resource()
	if g := f.kind.gvk.Group; g != "" {
		what += "." + g
	}
	switch {
	case apierrors.IsNotFound(f.err):
		return fmt.Sprintf("the kind %s is not installed (%s): apply the CRDs of the chart", f.kind.gvk.Kind, what)
	case apierrors.IsForbidden(f.err):
		why := f.err.Error()
		if _, after, ok := strings.Cut(why, "forbidden: "); ok {
			// Both permissions are needed, whichever was requested first.
			why = strings.ReplaceAll(after, `cannot watch resource`, `cannot list resource`)
		}
		return fmt.Sprintf("%ss cannot be read: %s; allow get, list and watch", f.kind.gvk.Kind, why)
	case apierrors.IsUnauthorized(f.err):
		return "the kube-apiserver does not accept the credentials of this process"
	}
	return "the kube-apiserver does not answer: " + cause(f.err)
}

// cause returns an error without the request, which contains the address twice.
func cause(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, `": `); ok && strings.Contains(text, "://") {
		return after
	}
	return text
}

// faults keeps the reasons why kinds cannot be read. It is safe for concurrent use.
type faults struct {
	log *slog.Logger
	// changed is signalled when the reasons change.
	changed chan struct{}
	mu      sync.Mutex
	by      map[*reader]fault
}

func newFaults(log *slog.Logger, changed chan struct{}) *faults {
	return &faults{log: log, changed: changed, by: map[*reader]fault{}}
}

// set records why a reader cannot read; nil means that it can.
func (f *faults) set(r *reader, now *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, was := f.by[r]
	switch {
	case now == nil && was:
		delete(f.by, r)
		signal(f.changed)
		f.log.Info("objects of Kubernetes can be read again", "kind", r.kind.gvk.Kind)
	case now != nil:
		f.by[r] = *now
		if !was || before.sentence() != now.sentence() {
			signal(f.changed)
			if r.kind.optional && apierrors.IsNotFound(now.err) {
				return
			}
			f.log.Warn("objects of Kubernetes cannot be read; what is live stays live", "kind", r.kind.gvk.Kind,
				"reason", now.sentence(), "without", r.kind.without)
		}
	}
}

// of returns why a kind cannot be read; false if it can be read, or no request was made.
func (f *faults) of(k kind) (fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r, fault := range f.by {
		if r.kind.gvk == k.gvk {
			return fault, true
		}
	}
	return fault{}, false
}
