package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Options of a Watch. All except Namespaces, HostNames, ProxySettings and ClusterDomain are required.
type Options struct {
	// Config says how to reach the API server, and with which identity.
	Config *rest.Config
	// Namespaces are the namespaces that are read; none means all.
	Namespaces []string
	// HostNames are the host names that GatewayHosts may have, by namespace; nil means all.
	HostNames translate.HostNames
	// Proxies are the names of the installation's proxies, ProxySettings is the file with their other fields.
	Proxies       []string
	ProxySettings string
	// Controller is the controllerName of the GatewayClasses of this installation.
	Controller string
	// ClusterDomain is the domain of the cluster's DNS names; empty means the default.
	ClusterDomain string
	// Store is the mirror: it is empty, and only the Watch writes to it.
	Store store.Store
	// Source is the mirror, with the work that each change requires before it is built.
	Source store.Source
	Status *status.Registry
	Log    *slog.Logger
}

// Watch keeps the mirror equal to the objects of Kubernetes. Use New.
type Watch struct {
	opts     Options
	follower *follower
	secrets  *secrets
	mirror   *mirror
	source   *Source
	proxies  *proxyFile
	world    *translate.World
	// received is what the mirror does not have yet.
	received batch
	// pending are operations that could not be written yet, including operations that wait for the first complete
	// configuration.
	pending []translate.Op
	// gone are upstreams that are no longer discovered once pending is written.
	gone map[model.Key]*model.Endpoints

	positions positions

	mu sync.Mutex
	// objects are the results for GatewayHosts, RouteFilters and GlobalConfigs.
	objects   map[translate.Ref]*translate.Object
	listeners []func([]translate.Ref)
	// served are the proxies of the installation.
	served []*model.Proxy
	// waiting is why there is no complete configuration yet.
	waiting string
}

// New returns a watch that sends no request yet.
func New(ctx context.Context, opts Options) (*Watch, error) {
	w := &Watch{
		opts: opts, mirror: &mirror{store: opts.Store, log: opts.Log, left: map[model.Key]string{}},
		source: newSource(opts.Source), objects: map[translate.Ref]*translate.Object{},
		gone: map[model.Key]*model.Endpoints{}, waiting: "nothing was read yet",
	}
	var err error
	if w.proxies, err = openProxyFile(opts.ProxySettings, opts.Proxies); err != nil {
		return nil, err
	}
	w.world = translate.New(w.proxies.list, opts.HostNames)
	w.world.Controller = opts.Controller
	w.world.ClusterDomain, w.served = opts.ClusterDomain, w.proxies.list
	if w.follower, err = newFollower(ctx, opts.Config, opts.Namespaces, opts.Log); err != nil {
		return nil, err
	}
	types, err := scheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(opts.Config, client.Options{Scheme: types, Mapper: mapper()})
	if err != nil {
		return nil, err
	}
	w.secrets = newSecrets(api, w.follower.queue.changed)
	return w, nil
}

// Source is the source of the build loop: the mirror with the endpoints of its upstreams.
func (w *Watch) Source() *Source { return w.source }

// Cache returns the objects that are watched, as they are in the API server. They must not be changed.
func (w *Watch) Cache() cache.Cache { return w.follower.cache }

// OnChange sets a function that is called with the GatewayHosts, RouteFilters and GlobalConfigs whose Object has
// changed, in the order of the changes. The function must not wait. Call OnChange before Run.
func (w *Watch) OnChange(f func([]translate.Ref)) { w.listeners = append(w.listeners, f) }

// Object returns the result for a GatewayHost, RouteFilter or GlobalConfig; nil if it does not exist or was not
// translated yet.
func (w *Watch) Object(ref translate.Ref) *translate.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[ref]
}

// Objects returns the results for all of them.
func (w *Watch) Objects() map[translate.Ref]*translate.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.objects)
}

// Seen returns, for each kind, the resourceVersion up to which a revision of the mirror has the changes of Kubernetes;
// nil if that is not known. While an informer lists its objects again, the result may briefly be ahead of them.
func (w *Watch) Seen(revision int64) map[string]int64 { return w.positions.at(revision) }

// HasRead reports whether all objects of a kind were read once.
func (w *Watch) HasRead(kind string) bool { return w.follower.isSynced(kind) }

// Proxies returns the proxies of the installation. They must not be changed.
func (w *Watch) Proxies() []*model.Proxy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.served
}

func (w *Watch) setProxies(list []*model.Proxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served = list
}

// Waiting says why there is no complete configuration yet; empty means that there is.
func (w *Watch) Waiting() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// Degraded says which kinds cannot be read now.
func (w *Watch) Degraded() []string { return w.follower.degraded() }

// Run watches the objects until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.follower.run(ctx) })
	group.Go(func() error { return w.source.run(ctx) })
	group.Go(func() error { return w.secrets.run(ctx) })
	group.Go(func() error { return w.write(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

const (
	// firstLook is how often the first lists are checked for.
	firstLook = 50 * time.Millisecond
	// laterLook is how often to check for changes of the proxies' file and of what can be read, and to retry failures.
	laterLook = 2 * time.Second
)

// write updates the mirror until ctx ends.
func (w *Watch) write(ctx context.Context) error {
	for {
		w.step(ctx)
		look := laterLook
		if w.Waiting() != "" {
			look = firstLook
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.follower.queue.changed:
		case <-time.After(look):
		}
	}
}

// step handles the changes since the last step.
func (w *Watch) step(ctx context.Context) {
	first, complete := w.Waiting() != "", true
	if first {
		var waiting string
		// Before the queue is emptied: everything it knows of is then in it.
		if waiting, complete = w.follower.synced(); !complete {
			w.setWaiting(waiting)
		}
	}
	w.tellUnreadable()
	if changed, err := w.proxies.look(); err != nil {
		w.opts.Log.Warn("the proxies stay as they were", "file", w.opts.ProxySettings, "err", err)
	} else if changed {
		w.world.SetProxies(w.proxies.list)
		w.setProxies(w.proxies.list)
	}
	fresh := w.follower.queue.take()
	w.received.add(fresh)
	w.take(fresh)
	if !complete {
		return
	}
	if lacking := w.settle(); lacking > 0 {
		w.source.set(w.world.TakeEndpoints(), false) // requests must not go to addresses that are gone
		if first {
			w.setWaiting(fmt.Sprintf("%d Secrets that objects name have not been read yet", lacking))
		}
		return
	}
	b := w.received
	w.received = batch{}
	step := w.world.Take()
	w.source.set(step.Endpoints, false)
	w.pending = merge(w.pending, step.Ops)
	for key, endpoints := range step.Endpoints {
		if delete(w.gone, key); endpoints == nil {
			w.gone[key] = nil
		}
	}
	revision, err := w.flush(ctx, b)
	if err != nil {
		if ctx.Err() == nil {
			w.opts.Log.Warn("the copy of the configuration cannot be written; what is live stays live", "err", err)
		}
	} else {
		w.positions.add(revision, b.seen)
		w.source.set(w.gone, true)
		clear(w.gone)
	}
	w.tell(step.Objects)
	if err == nil && first {
		w.setWaiting("")
		close(w.source.complete)
	}
}

// take passes what is new in a batch, and the Secrets that were read, to the world.
func (w *Watch) take(fresh batch) {
	var reread []translate.Ref
	for ref, obj := range fresh.objects {
		switch {
		case translate.IsFetched(ref.Kind):
			w.secrets.setVersion(ref, obj)
			if w.world.UsesSecret(ref) {
				reread = append(reread, ref)
			}
		case obj == nil:
			w.world.Delete(ref)
		default:
			w.world.Upsert(obj)
		}
	}
	w.secrets.take(w.world)
	w.secrets.ask(w.world, append(reread, w.secrets.due(w.world, w.watches)...), w.watches)
}

// watches reports whether the metadata of all objects of a kind is known, and their changes are.
func (w *Watch) watches(kind string) bool {
	fault, failed := w.follower.faults.of(kindOf(metadataOf(kind)))
	return w.follower.isSynced(kind) && (!failed || !fault.isDenied())
}

// settle translates what has changed. It returns how many Secrets must be read before that is complete; they are
// requested.
func (w *Watch) settle() (lacking int) {
	for refs := w.world.Settle(); len(refs) > 0; refs = w.world.Settle() {
		if n := w.secrets.lacking(w.world, refs, w.watches); n == len(refs) {
			return n
		}
	}
	return 0
}

// flush writes what is pending.
func (w *Watch) flush(ctx context.Context, b batch) (int64, error) {
	if len(w.pending) == 0 {
		return w.mirror.revision(ctx)
	}
	revision, err := w.mirror.write(ctx, b.name(), w.pending)
	if err == nil {
		w.pending = nil
	}
	return revision, err
}

// merge adds operations to the pending ones. The newest of each key counts.
func merge(before, now []translate.Op) []translate.Op {
	if len(before) == 0 {
		return now
	}
	newer := make(map[model.Key]bool, len(now))
	for _, op := range now {
		newer[op.Key] = true
	}
	before = slices.DeleteFunc(before, func(op translate.Op) bool { return newer[op.Key] })
	return append(before, now...)
}

// tellUnreadable reports to the world and the status which kinds cannot be read.
func (w *Watch) tellUnreadable() {
	var conditions []model.Condition
	for _, k := range w.follower.followed {
		fault, failed := w.follower.faults.of(k.kind)
		failed = failed && !k.isMissed(fault)
		why := ""
		if failed && !k.hasSynced() {
			why = fault.sentence()
		}
		w.world.SetUnreadable(k.id(), why)
		if failed {
			conditions = append(conditions, model.Condition{
				Key: model.NewKey(Actor, k.resource()), Code: model.KubernetesUnreadable, Message: fault.sentence(),
			})
		}
	}
	for key, why := range w.mirror.left {
		conditions = append(conditions, model.Condition{Key: key, Code: model.NotStored, Message: why})
	}
	w.opts.Status.SetConditions(Actor, conditions)
}

// tell stores the results for objects and notifies the listeners.
func (w *Watch) tell(changed map[translate.Ref]*translate.Object) {
	if len(changed) == 0 {
		return
	}
	w.mu.Lock()
	for ref, o := range changed {
		if o == nil {
			delete(w.objects, ref)
		} else {
			w.objects[ref] = o
		}
	}
	w.mu.Unlock()
	refs := slices.SortedFunc(maps.Keys(changed), translate.Ref.Compare)
	for _, f := range w.listeners {
		f(refs)
	}
}

func (w *Watch) setWaiting(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = why
}
