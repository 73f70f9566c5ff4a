package kube

import (
	"maps"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// queue has what changed since the writer last took it: the newest state of each object. It is safe for concurrent
// use.
type queue struct {
	// changed has capacity 1; it signals that the queue is not empty and carries no data.
	changed chan struct{}

	mu sync.Mutex
	// objects has nil for a deleted object.
	objects map[translate.Ref]client.Object
	// seen is the newest resourceVersion that was reported for each kind.
	seen map[string]int64
}

func newQueue() *queue {
	return &queue{changed: make(chan struct{}, 1), objects: map[translate.Ref]client.Object{}, seen: map[string]int64{}}
}

// put records the current state of an object, or that it is gone. same says that no field that is read differs.
func (q *queue) put(kind string, obj client.Object, gone, same bool) {
	q.mu.Lock()
	if version, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64); err == nil {
		q.seen[kind] = max(q.seen[kind], version)
	}
	if !same {
		r := translate.Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
		if gone {
			obj = nil
		}
		q.objects[r] = obj
	}
	q.mu.Unlock()
	signal(q.changed)
}

// batch is what has changed.
type batch struct {
	objects map[translate.Ref]client.Object
	// seen is, for each kind, the resourceVersion up to which this batch and the earlier ones have everything.
	seen map[string]int64
}

// add adds a later batch.
func (b *batch) add(later batch) {
	if b.objects == nil {
		b.objects = map[translate.Ref]client.Object{}
	}
	maps.Copy(b.objects, later.objects)
	b.seen = later.seen
}

// name describes the batch for the change log.
func (b batch) name() string {
	if len(b.objects) == 1 {
		for r := range b.objects {
			return r.String()
		}
	}
	return strconv.Itoa(len(b.objects)) + " objects"
}

// take empties the queue.
func (q *queue) take() batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := batch{q.objects, make(map[string]int64, len(q.seen))}
	for kind, version := range q.seen {
		b.seen[kind] = version
	}
	q.objects = map[translate.Ref]client.Object{}
	return b
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
