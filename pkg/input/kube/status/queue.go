package status

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
)

const (
	// settleTime is how long the status of a new generation is held back while Envoys are about to receive it: usually it
	// is then written once.
	settleTime = 2 * time.Second
	// detailEvery is how often an object is written if only a message or the number of Envoys differs.
	detailEvery = 10 * time.Second
	// refusedWait is when an object is retried after a refusal; forbiddenWait when a forbidden kind is.
	refusedWait, forbiddenWait = time.Minute, 15 * time.Second
	// awayLeast and awayMost bound the wait for an API server that does not answer.
	awayLeast, awayMost = time.Second, 30 * time.Second
)

type condition = metav1.Condition

// job is one patch.
type job struct {
	ref    Ref
	uid    types.UID
	status gatewayv1.Status
	// api is the status of an object of the Gateway API; nil for others.
	api any
	// claims is the version that the object must have, if this installation did not write its status before; 0 means any.
	claims int64
	// since is when the user's change was seen, due when it may be written.
	since, due time.Time
	// detail says that only a message or the number of Envoys differs.
	detail bool
}

// queue has what is to be written. It has no goroutine and no clock.
type queue struct {
	// controller is the name of this installation in a status. Kinds in unnamed have an older CRD without that field.
	controller string
	unnamed    map[string]bool
	known      map[Ref]*entry
	// jobs are the writes that are due now or later.
	jobs map[Ref]*job
	// forbidden are kinds that must not be written before a time.
	forbidden map[string]time.Time
	// awayUntil is when the API server is tried again; awayFor is the length of that wait.
	awayUntil time.Time
	awayFor   time.Duration
}

// entry is the queue's record of an object.
type entry struct {
	uid types.UID
	// status is its status in version.
	status  gatewayv1.Status
	api     any
	version int64
	// generation is the newest, seen when it first appeared.
	generation int64
	seen       time.Time
	// written is when it was last written.
	written time.Time
	// running says that a patch is in flight; another must not begin before notBefore.
	running   bool
	notBefore time.Time
	// lacks is since when an Envoy, by replica and address, lacks the object; absent is since when there has been no
	// Envoy.
	lacks  map[string]time.Time
	absent time.Time
}

func newQueue(controller string) *queue {
	return &queue{
		controller: controller, unnamed: map[string]bool{},
		known: map[Ref]*entry{}, jobs: map[Ref]*job{}, forbidden: map[string]time.Time{},
	}
}

// take compares what is known of all objects with their status. It returns the time after which that may differ without
// a change; 0 means never.
func (q *queue) take(objects []Object, now time.Time) (again time.Duration) {
	there := make(map[Ref]bool, len(objects))
	for _, o := range objects {
		there[o.Ref] = true
		if after := q.takeOne(o, now); after > 0 && (again == 0 || after < again) {
			again = after
		}
	}
	for ref, e := range q.known {
		if !there[ref] && !e.running {
			delete(q.known, ref)
			delete(q.jobs, ref)
		}
	}
	return again
}

func (q *queue) takeOne(o Object, now time.Time) (again time.Duration) {
	e := q.known[o.Ref]
	if e == nil || e.uid != o.UID {
		e = &entry{uid: o.UID, lacks: map[string]time.Time{}, running: e != nil && e.running}
		q.known[o.Ref] = e
	}
	if o.ResourceVersion >= e.version {
		e.status, e.version = o.Status, o.ResourceVersion
		if o.API != nil {
			e.api = o.API.Before()
		}
	}
	if o.Pending { // it was changed, and this replica has not built it yet
		delete(q.jobs, o.Ref)
		return 0
	}
	if e.seen.IsZero() || e.generation != o.Facts.Generation {
		e.generation, e.seen = o.Facts.Generation, now
	}
	e.measure(&o.Facts, now)
	if o.API != nil {
		return q.takeAPI(o, e, now)
	}
	wanted, again := statusOf(o.Facts, e.status, now)
	if !q.unnamed[o.Kind] {
		wanted.Controller = q.controller
	}
	if same(e.status, wanted) {
		delete(q.jobs, o.Ref)
		return again
	}
	j := q.jobs[o.Ref]
	if j == nil || j.since.Before(e.seen) {
		j = &job{ref: o.Ref, since: now}
		q.jobs[o.Ref] = j
	}
	j.uid, j.status, j.claims = o.UID, wanted, 0
	if e.status.Controller != q.controller {
		j.claims = e.version
	}
	j.due, j.detail = e.due(wanted, j.since)
	return again
}

// due returns when a status is written. detail says that it differs only in a detail.
func (e *entry) due(wanted gatewayv1.Status, since time.Time) (due time.Time, detail bool) {
	before := e.status
	switch {
	case before.ObservedGeneration == wanted.ObservedGeneration && before.Proxy == wanted.Proxy &&
		conditions.SayTheSame(before.Conditions, wanted.Conditions):
		return maxTime(since, e.written.Add(detailEvery)), true
	case before.ObservedGeneration != wanted.ObservedGeneration && isPassing(wanted):
		return e.seen.Add(settleTime), false
	}
	return since, false
}

// isPassing reports whether a status may be momentary: an Envoy that refused the last generation is about to receive
// the new one.
func isPassing(s gatewayv1.Status) bool {
	return slices.ContainsFunc(s.Conditions, func(c condition) bool {
		return c.Type == conditions.Programmed && (c.Reason == conditions.Waiting || c.Reason == conditions.Refused)
	})
}

// measure fills in how long Envoys have lacked the object, and how long there has been none.
func (e *entry) measure(f *conditions.Facts, now time.Time) {
	lacks := map[string]time.Time{}
	for _, r := range f.Replicas {
		for i := range r.Lacks {
			key := r.Name + " " + r.Lacks[i].Envoy
			since, ok := e.lacks[key]
			if !ok {
				since = now
			}
			lacks[key], r.Lacks[i].For = since, now.Sub(since)
		}
	}
	e.lacks = lacks
	if f.Connected() > 0 {
		e.absent = time.Time{}
		return
	}
	if e.absent.IsZero() {
		e.absent = now
	}
	f.Absent = now.Sub(e.absent)
}

// statusOf returns the status that an object should have.
func statusOf(f conditions.Facts, before gatewayv1.Status, now time.Time) (gatewayv1.Status, time.Duration) {
	list, again := conditions.Conditions(f, before.Conditions, now)
	s := gatewayv1.Status{ObservedGeneration: f.Generation, Conditions: list}
	if len(f.Proxies) > 0 {
		s.Proxy = f.Proxies[0]
	}
	if have, ok := f.Have(); ok {
		n := int32(min(have, 1<<30)) // #nosec G115 -- it is bounded
		s.Envoys = &n
	}
	return s, again
}

func same(a, b gatewayv1.Status) bool {
	if (a.Envoys == nil) != (b.Envoys == nil) || a.Envoys != nil && *a.Envoys != *b.Envoys {
		return false
	}
	return a.ObservedGeneration == b.ObservedGeneration && a.Proxy == b.Proxy && a.Controller == b.Controller &&
		conditions.Equal(a.Conditions, b.Conditions)
}

// next returns the job to do now, or nil, and when to call it again; 0 means after a change. What a user changed last
// comes first; what differs only in a detail comes last.
func (q *queue) next(now time.Time) (*job, time.Duration) {
	if now.Before(q.awayUntil) {
		return nil, q.awayUntil.Sub(now)
	}
	var best *job
	var wait time.Duration
	for ref, j := range q.jobs {
		e := q.known[ref]
		if e.running {
			continue
		}
		due := maxTime(j.due, maxTime(e.notBefore, q.forbidden[ref.Kind]))
		if left := due.Sub(now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		if best == nil || j.before(best) {
			best = j
		}
	}
	if best == nil {
		return nil, wait
	}
	q.known[best.ref].running = true
	delete(q.jobs, best.ref)
	return best, 0
}

func (j *job) before(other *job) bool {
	if j.detail != other.detail {
		return !j.detail
	}
	return j.since.After(other.since)
}

// wrote records a patch that the API server accepted.
func (q *queue) wrote(j job, version int64, now time.Time) {
	q.awayFor = 0
	delete(q.forbidden, j.ref.Kind)
	e := q.known[j.ref]
	if e == nil {
		return
	}
	e.running = false
	if e.uid == j.uid && version > e.version {
		e.status, e.api, e.version, e.written = j.status, j.api, version, now
	}
}

// retry records a failed patch. The next look at the object tries it again, after notBefore at the earliest.
func (q *queue) retry(j job, notBefore time.Time) {
	e := q.known[j.ref]
	if e == nil {
		return
	}
	e.running, e.notBefore = false, notBefore
	if e.uid == j.uid && q.jobs[j.ref] == nil {
		q.jobs[j.ref] = &j
	}
}

// drop records that an object is gone or was replaced by a new one.
func (q *queue) drop(j job) {
	if e := q.known[j.ref]; e != nil {
		e.running = false
	}
}

// away records that the API server does not answer or is overloaded.
func (q *queue) away(j job, now time.Time) {
	q.retry(j, time.Time{})
	if now.Before(q.awayUntil) {
		return // several patches were in flight
	}
	q.awayFor = min(max(2*q.awayFor, awayLeast), awayMost)
	q.awayUntil = now.Add(q.awayFor)
}

// ParseVersion reads a resourceVersion. Those of one kind are increasing numbers (Kubernetes 1.35); the result is 0 for
// anything else.
func ParseVersion(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
