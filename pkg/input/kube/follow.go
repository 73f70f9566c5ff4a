package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower watches the objects of all kinds and puts changes into a queue.
type follower struct {
	cache  cache.Cache
	faults *faults
	queue  *queue
	// followed are the kinds, each with a function that reports whether its initial objects are in the queue.
	followed []followed
}

type followed struct {
	kind
	hasSynced func() bool
}

// newFollower returns a follower that sends no request yet. No namespaces means all.
func newFollower(ctx context.Context, config *rest.Config, namespaces []string, log *slog.Logger) (*follower, error) {
	types, err := scheme()
	if err != nil {
		return nil, err
	}
	f := &follower{queue: newQueue()}
	f.faults = newFaults(log, f.queue.changed)
	options := cache.Options{
		Scheme: types, Mapper: mapper(), ByObject: map[client.Object]cache.ByObject{}, NewInformer: f.newInformer,
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range namespaces {
			options.DefaultNamespaces[n] = cache.Config{}
		}
	}
	share := true
	for _, k := range kinds() {
		options.ByObject[k.object] = cache.ByObject{Transform: k.transform, UnsafeDisableDeepCopy: &share}
	}
	if f.cache, err = cache.New(config, options); err != nil {
		return nil, fmt.Errorf("following the objects of Kubernetes: %w", err)
	}
	for _, k := range kinds() {
		informer, err := f.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("following the %ss of Kubernetes: %w", k.gvk.Kind, err)
		}
		handle, err := informer.AddEventHandler(f.handler(k))
		if err != nil {
			return nil, fmt.Errorf("following the %ss of Kubernetes: %w", k.gvk.Kind, err)
		}
		f.followed = append(f.followed, followed{k, handle.HasSynced})
	}
	return f, nil
}

// run follows until ctx ends.
func (f *follower) run(ctx context.Context) error { return f.cache.Start(ctx) }

// newInformer makes an informer whose requests are repeated until they are answered.
func (f *follower) newInformer(
	lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	r := &reader{kind: kindOf(of), inner: toolscache.ToListerWatcherWithContext(lw), faults: f.faults}
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: r.list, WatchFuncWithContext: r.watch,
	}, of, resync, indexers)
}

// kindOf returns the kind of an empty object.
func kindOf(of runtime.Object) kind {
	for _, k := range kinds() {
		if reflect.TypeOf(k.object) != reflect.TypeOf(of) {
			continue
		}
		if m, ok := of.(*metav1.PartialObjectMetadata); !ok || m.GroupVersionKind() == k.gvk {
			return k
		}
	}
	return kind{}
}

// handler puts changes into the queue.
func (f *follower) handler(k kind) toolscache.ResourceEventHandler {
	name := k.id()
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f.queue.put(name, obj.(client.Object), false, false) },
		UpdateFunc: func(old, obj any) {
			before, now := old.(client.Object), obj.(client.Object)
			f.queue.put(name, now, false, isSame(before, now))
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if o, ok := obj.(client.Object); ok {
				f.queue.put(name, o, true, false)
			}
		},
	}
}

// isSame reports whether no field that is read differs: only a status was written, or nothing at all.
func isSame(before, now client.Object) bool {
	if before.GetResourceVersion() == now.GetResourceVersion() {
		return true
	}
	return now.GetGeneration() > 0 && before.GetUID() == now.GetUID() && before.GetGeneration() == now.GetGeneration() &&
		maps.Equal(before.GetLabels(), now.GetLabels()) && maps.Equal(before.GetAnnotations(), now.GetAnnotations()) &&
		reflect.TypeOf(now) != reflect.TypeOf(&metav1.PartialObjectMetadata{})
}

// synced reports whether every readable kind was read, including those that are needed. Otherwise waiting says
// what is missing.
func (f *follower) synced() (waiting string, ok bool) {
	for _, k := range f.followed {
		if k.hasSynced() {
			continue
		}
		fault, failed := f.faults.of(k.kind)
		switch {
		case failed && fault.isDenied() && !k.needed:
		case failed:
			return fault.sentence(), false
		default:
			return "the list of " + k.gvk.Kind + "s has not arrived yet", false
		}
	}
	return "", true
}

// isSynced reports whether all objects of a kind were read once.
func (f *follower) isSynced(name string) bool {
	for _, k := range f.followed {
		if k.id() == name {
			return k.hasSynced()
		}
	}
	return false
}

// degraded says what cannot be read now, one sentence per kind.
func (f *follower) degraded() (list []string) {
	for _, k := range f.followed {
		fault, failed := f.faults.of(k.kind)
		if !failed || k.isMissed(fault) {
			continue
		}
		if k.hasSynced() {
			list = append(list, fault.sentence()+"; what is live of "+k.gvk.Kind+"s stays live")
			continue
		}
		list = append(list, fault.sentence()+"; "+k.without)
	}
	return list
}
