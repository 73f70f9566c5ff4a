package board

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
)

// Label is set on each ConfigMap of a board; its value is Options.Installation.
const Label = "gateway.gatehouse.dev/replica-of"

const (
	manager       = "gatehouse-replica"
	beatKey       = "gateway.gatehouse.dev/beat"
	replicaKey    = "replica"
	reportVersion = "report-version"
	mailVersion   = "mail-version"
	reportKey     = "report"
	mailKey       = "mail"
	endedKey      = "ended"
)

// Options of a Board. All except Service, Pod and PodUID are required.
type Options struct {
	// Config is how the API server is reached.
	Config *rest.Config
	// Namespace is the namespace of the ConfigMaps.
	Namespace string
	// Installation separates the replicas of one installation from the replicas of others in the namespace. It must be a
	// valid label value.
	Installation string
	// Service is the Service by which Envoys find the replicas. A Pod that is an endpoint of it and posts nothing is a
	// replica that is not heard. If Service is empty, a replica that posts nothing is unknown.
	Service string
	// Replica is the name of this replica; without a Pod it names the ConfigMap.
	Replica string
	// Pod and PodUID are the Pod of this replica, which owns the ConfigMap; empty outside a cluster.
	Pod, PodUID string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Board is a replicas.Board. Use New, and Run before anything else.
type Board struct {
	opts    Options
	client  corev1client.ConfigMapInterface
	name    string
	changed chan struct{}
	beats   int64
	// content is what was last published, by key.
	content map[string][]byte
	// posts are the ConfigMaps of the board, kept current by a watch.
	posts cache.Store
	reads cache.Controller

	// expected are the Pods of the replicas; nil without a Service. absent are the Pods that the last read did not find.
	expected *expected
	absent   map[string]bool

	// published is when this replica first published.
	published time.Time

	mu    sync.Mutex
	heard map[string]sign // by the name of the ConfigMap
	// ended is when replicas ended, by their names; left by the names of their ConfigMaps.
	ended, left map[string]time.Time
}

// sign is the last sign of life of a replica.
type sign struct {
	replica, version string
	at               time.Time
}

// New returns a board that has read nothing yet.
func New(o Options) (*Board, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the replicas' ConfigMaps: %w", err)
	}
	b := &Board{
		opts: o, client: client.CoreV1().ConfigMaps(o.Namespace), name: configMapName(o.Pod, o.Replica),
		changed: make(chan struct{}, 1), heard: map[string]sign{}, ended: map[string]time.Time{},
		left: map[string]time.Time{}, absent: map[string]bool{},
	}
	if o.Service != "" {
		b.expected = expect(client, o.Namespace, o.Service, b.signal)
	}
	selector := Label + "=" + o.Installation
	b.posts, b.reads = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", o.Namespace,
			func(l *metav1.ListOptions) { l.LabelSelector = selector }),
		ObjectType: &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    b.observe,
			UpdateFunc: func(_, now any) { b.observe(now) },
			DeleteFunc: b.forget,
		},
		Transform: dropManagedFields,
	})
	return b, nil
}

func dropManagedFields(o any) (any, error) {
	if m, ok := o.(*corev1.ConfigMap); ok {
		m.ManagedFields = nil
	}
	return o, nil
}

// configMapName returns the name of a replica's ConfigMap: the name of its Pod, if it has one. A restarted container
// uses the same ConfigMap.
func configMapName(pod, replica string) string {
	if pod == "" {
		pod = replica
	}
	name := []byte("gatehouse-replica-" + pod)
	for i, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			name[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
		default:
			name[i] = '-'
		}
	}
	return string(name[:min(len(name), 253)])
}

// Run watches the posts of all replicas until ctx ends.
func (b *Board) Run(ctx context.Context) error {
	var group sync.WaitGroup
	if b.expected != nil {
		group.Go(func() { b.expected.reads.RunWithContext(ctx) })
	}
	b.reads.RunWithContext(ctx)
	group.Wait()
	return nil
}

// Synced reports whether the ConfigMaps of the replicas, and the Pods that they have, were read once: before that, the
// replicas are not known.
func (b *Board) Synced() bool {
	return b.reads.HasSynced() && (b.expected == nil || b.expected.reads.HasSynced())
}

// observe records a ConfigMap that has changed. One that was only listed again is no sign of life. A replica has ended
// if another is in its place, as after the restart of a container in its Pod.
func (b *Board) observe(o any) {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return
	}
	now, replica := b.opts.Now(), m.Data[replicaKey]
	b.mu.Lock()
	was, known := b.heard[m.Name]
	if known && was.replica != replica {
		b.ended[was.replica] = now
	}
	if m.Data[endedKey] != "" {
		b.ended[replica], b.left[m.Name] = now, now
	} else {
		delete(b.ended, replica)
		delete(b.left, m.Name)
	}
	if !known || was.version != m.ResourceVersion {
		b.heard[m.Name] = sign{replica, m.ResourceVersion, now}
	}
	b.mu.Unlock()
	if m.Name != b.name {
		b.signal()
	}
}

func (b *Board) forget(o any) {
	name, err := cache.DeletionHandlingObjectToName(o)
	if err != nil {
		return
	}
	b.mu.Lock()
	delete(b.heard, name.Name)
	b.mu.Unlock()
	b.signal()
}

func (b *Board) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Changed implements replicas.Board.
func (b *Board) Changed() <-chan struct{} { return b.changed }

// Pace implements replicas.Board. A beat writes the whole ConfigMap into etcd (ADR 0067).
func (b *Board) Pace() replicas.Pace { return replicas.DefaultPace() }

// Publish implements replicas.Board.
func (b *Board) Publish(ctx context.Context, p replicas.Post) error {
	b.beats++
	m := corev1apply.ConfigMap(b.name, b.opts.Namespace).
		WithLabels(map[string]string{Label: b.opts.Installation, "app.kubernetes.io/managed-by": "gatehouse"}).
		WithAnnotations(map[string]string{beatKey: strconv.FormatInt(b.beats, 10)}).
		WithData(map[string]string{
			replicaKey: p.Replica, endedKey: "", reportVersion: strconv.FormatInt(p.Versions.Report, 10),
			mailVersion: strconv.FormatInt(p.Versions.Mail, 10),
		})
	content := map[string][]byte{reportKey: p.Report, mailKey: p.Mail}
	for key := range content {
		if content[key] == nil { // the last one is kept
			content[key] = b.content[key]
		}
		if content[key] != nil {
			m.WithBinaryData(map[string][]byte{key: content[key]})
		}
	}
	if b.opts.Pod != "" && b.opts.PodUID != "" {
		m.WithOwnerReferences(metav1apply.OwnerReference().
			WithAPIVersion("v1").WithKind("Pod").WithName(b.opts.Pod).WithUID(types.UID(b.opts.PodUID)))
	}
	if _, err := b.client.Apply(ctx, m, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s, which reports the Envoys of this replica to the others: %w",
			b.opts.Namespace, b.name, err)
	}
	b.content = content
	if b.published.IsZero() {
		b.published = b.opts.Now()
	}
	return nil
}

// Beat implements replicas.Board.
func (b *Board) Beat(ctx context.Context, replica string) (kept bool, err error) {
	b.beats++
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, beatKey, strconv.FormatInt(b.beats, 10))
	m, err := b.client.Patch(ctx, b.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("renewing ConfigMap %s/%s, by which the other replicas know that this one lives: %w",
			b.opts.Namespace, b.name, err)
	}
	return m.Data[replicaKey] == replica && m.Data[endedKey] == "" && m.Labels[Label] == b.opts.Installation, nil
}

// ownTime is how long after its first post this replica may be missing from what is read.
const ownTime = 5 * time.Second

// Read implements replicas.Board. It waits for the first list.
func (b *Board) Read(
	ctx context.Context, replica string, have map[string]replicas.Versions,
) (list []replicas.Notice, kept bool, err error) {
	select {
	case <-b.reads.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil, false, fmt.Errorf("the ConfigMaps of the replicas in namespace %s are not read yet: %w", b.opts.Namespace,
			ctx.Err())
	}
	now := b.opts.Now()
	kept = now.Sub(b.published) < ownTime
	for _, o := range b.posts.List() {
		m, ok := o.(*corev1.ConfigMap)
		if !ok || m.Data[replicaKey] == "" || m.Data[endedKey] != "" {
			continue
		}
		if m.Data[replicaKey] == replica {
			kept = true
			continue
		}
		age := now.Sub(b.lastSign(m))
		if age > b.Pace().Forget {
			err = errors.Join(err, b.removeOld(ctx, m))
			continue
		}
		n := replicas.Notice{Post: postOf(m), Age: age}
		if had := have[n.Replica]; had == n.Versions {
			n.Report, n.Mail = nil, nil
		}
		list = append(list, n)
	}
	list = append(list, b.unexplained(now)...)
	return append(list, b.endedNow(now)...), kept, err
}

// unexplained lists the Pods that should post and do not, as replicas with unknown state.
func (b *Board) unexplained(now time.Time) (list []replicas.Notice) {
	if b.expected == nil {
		return nil
	}
	tells := func(pod string) bool {
		name := configMapName(pod, "")
		o, _, _ := b.posts.GetByKey(b.opts.Namespace + "/" + name)
		m, ok := o.(*corev1.ConfigMap)
		return name == b.name || ok && m.Data[endedKey] == "" && now.Sub(b.lastSign(m)) <= b.Pace().Gone
	}
	left := func(pod string) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !b.left[configMapName(pod, "")].IsZero()
	}
	absent := map[string]bool{}
	for _, pod := range b.expected.without(tells, left) {
		absent[pod] = true
		list = append(list, replicas.Notice{Post: replicas.Post{Replica: pod}})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for pod := range b.absent {
		if !absent[pod] {
			b.ended[pod] = now
		}
	}
	for pod := range absent {
		delete(b.ended, pod)
	}
	b.absent = absent
	return list
}

// lastSign returns when the replica of a ConfigMap gave its last sign of life.
func (b *Board) lastSign(m *corev1.ConfigMap) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard[m.Name].at
}

// endedNow lists the replicas that have recently ended.
func (b *Board) endedNow(now time.Time) (list []replicas.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.left, func(_ string, at time.Time) bool { return now.Sub(at) > b.Pace().Gone })
	for name, at := range b.ended {
		if now.Sub(at) > b.Pace().Gone {
			delete(b.ended, name)
			continue
		}
		list = append(list, replicas.Notice{Post: replicas.Post{Replica: name}, Ended: true})
	}
	return list
}

func postOf(m *corev1.ConfigMap) replicas.Post {
	p := replicas.Post{Replica: m.Data[replicaKey], Report: m.BinaryData[reportKey], Mail: m.BinaryData[mailKey]}
	// An unreadable value is 0, a version that no post has.
	p.Versions.Report, _ = strconv.ParseInt(m.Data[reportVersion], 10, 64)
	p.Versions.Mail, _ = strconv.ParseInt(m.Data[mailVersion], 10, 64)
	return p
}

// removeOld removes the ConfigMap of a replica that is gone, unless it has changed.
func (b *Board) removeOld(ctx context.Context, m *corev1.ConfigMap) error {
	err := b.client.Delete(ctx, m.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing ConfigMap %s/%s of a replica that is gone: %w", m.Namespace, m.Name, err)
	}
	return nil
}

// End implements replicas.Board. The others see the end before the ConfigMap is deleted: a missing ConfigMap alone does
// not mean an end. If another process has replaced this replica's post, that post stays.
func (b *Board) End(ctx context.Context, replica string) error {
	m, err := b.client.Get(ctx, b.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("ending in ConfigMap %s/%s: %w", b.opts.Namespace, b.name, err)
	case m.Data[replicaKey] != replica:
		return nil
	}
	return b.end(ctx, m)
}

// end ends the replica of a ConfigMap, unless that has changed.
func (b *Board) end(ctx context.Context, m *corev1.ConfigMap) (err error) {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q},"data":{%q:"true"},"binaryData":null}`, m.UID,
		m.ResourceVersion, endedKey)
	name := m.Name
	if m, err = b.client.Patch(ctx, name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("recording in ConfigMap %s/%s that its replica has ended: %w", b.opts.Namespace, name, err)
	}
	return b.removeOld(ctx, m)
}

// Bury implements replicas.Board.
func (b *Board) Bury(ctx context.Context, replica string) error {
	now := b.opts.Now()
	for _, o := range b.posts.List() {
		m, ok := o.(*corev1.ConfigMap)
		if !ok || m.Data[replicaKey] != replica || m.Data[endedKey] != "" || now.Sub(b.lastSign(m)) <= b.Pace().Gone {
			continue
		}
		if err := b.end(ctx, m); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

var _ replicas.Board = (*Board)(nil)
