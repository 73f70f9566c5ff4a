package board

import (
	"slices"
	"strings"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// expected are the Pods that should post: those that have been serving endpoints of a Service, as long as they are its
// endpoints. A Pod that is no longer ready may still have Envoys.
type expected struct {
	slices  cache.Store
	reads   cache.Controller
	changed func()

	mu   sync.Mutex
	pods map[string]expectedPod
}

type expectedPod struct{ served, terminating bool }

// expect watches a Service of a namespace.
func expect(client kubernetes.Interface, namespace, service string, changed func()) *expected {
	e := &expected{changed: changed}
	selector := discoveryv1.LabelServiceName + "=" + service
	e.slices, e.reads = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(client.DiscoveryV1().RESTClient(), "endpointslices", namespace,
			func(l *metav1.ListOptions) { l.LabelSelector = selector }),
		ObjectType: &discoveryv1.EndpointSlice{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { e.note() },
			UpdateFunc: func(any, any) { e.note() },
			DeleteFunc: func(any) { e.note() },
		},
	})
	return e
}

// note reads all slices.
func (e *expected) note() {
	e.mu.Lock()
	pods := map[string]expectedPod{}
	for _, o := range e.slices.List() {
		slice, ok := o.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		for _, p := range slice.Endpoints {
			if p.TargetRef == nil || p.TargetRef.Kind != "Pod" {
				continue
			}
			name, c := p.TargetRef.Name, p.Conditions
			serves := isTrue(c.Serving, isTrue(c.Ready, true))
			pods[name] = expectedPod{
				served:      serves || pods[name].served || e.pods[name].served,
				terminating: isTrue(c.Terminating, false),
			}
		}
	}
	e.pods = pods
	e.mu.Unlock()
	e.changed()
}

// isTrue returns the value of a field, or absent if it is not set.
func isTrue(b *bool, absent bool) bool {
	if b == nil {
		return absent
	}
	return *b
}

// without lists the Pods that serve or served and for which has is false. A terminating Pod that has left properly is
// not among them.
func (e *expected) without(has, left func(pod string) bool) (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, p := range e.pods {
		if p.served && !has(name) && (!p.terminating || !left(name)) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
