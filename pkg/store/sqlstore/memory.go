package sqlstore

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// memory is what a transaction that writes knows of the configuration.
type memory struct {
	// objects has nil for what is not there.
	objects map[model.Key]model.Object
	// complete holds kinds with the first name of a key, of which objects has
	// all that are there.
	complete map[model.Key]bool
	// hosts has, for each host in lower case that was asked for, the services
	// that have it.
	hosts map[string][]model.Key
}

func newMemory() memory {
	return memory{objects: map[model.Key]model.Object{}, complete: map[model.Key]bool{}, hosts: map[string][]model.Key{}}
}

// recall returns an object, or nil when it is not there, and whether it knows.
func (m *memory) recall(key model.Key) (obj model.Object, known bool) {
	if obj, known = m.objects[key]; known {
		return obj, true
	}
	return nil, m.complete[rootOf(key.Kind, key.Root().Name())]
}

// rootOf stands for all objects of a kind whose keys begin with a name.
func rootOf(kind model.Kind, name string) model.Key { return model.NewKey(kind, name) }

// change notes that the transaction has made after of before.
func (m *memory) change(key model.Key, before, after model.Object) {
	m.objects[key] = after
	if old, ok := before.(*model.Service); ok {
		m.hosts[host(old)] = slices.DeleteFunc(m.hosts[host(old)], func(k model.Key) bool { return k == key })
	}
	if svc, ok := after.(*model.Service); ok {
		if list, asked := m.hosts[host(svc)]; asked {
			m.hosts[host(svc)] = append(list, key)
		}
	}
}

func host(s *model.Service) string { return strings.ToLower(s.FQDN) }

// ofHost answers the query for the services of one host; known is false for
// any other.
func (m *memory) ofHost(q store.Query) (list []model.Object, known bool) {
	if len(q.FQDNs) != 1 || !reflect.DeepEqual(q, store.Query{Kind: model.KindService, FQDNs: q.FQDNs}) {
		return nil, false
	}
	keys, known := m.hosts[strings.ToLower(q.FQDNs[0])]
	for _, key := range keys {
		list = append(list, copyOf(m.objects[key]))
	}
	return list, known
}

// remember keeps what a query has found and, where it asked for all that
// begins with some names, that there is nothing else.
func (m *memory) remember(q store.Query, t table, list []model.Object) {
	for _, obj := range list {
		m.objects[obj.Key()] = copyOf(obj)
	}
	var names []string
	switch {
	case len(q.FQDNs) > 0:
		if reflect.DeepEqual(q, store.Query{Kind: model.KindService, FQDNs: q.FQDNs}) {
			m.rememberHosts(q.FQDNs, list)
		}
		return
	case len(t.key) == 1:
		names, q.Names = q.Names, nil
	case t.key[0] == "service" && len(q.Services) > 0:
		names, q.Services = q.Services, nil
	case t.key[0] == "service" && q.Service != "":
		names, q.Service = []string{q.Service}, ""
	case t.key[0] == "proxy" && q.Proxy != "":
		names, q.Proxy = []string{q.Proxy}, ""
	}
	if !reflect.DeepEqual(q, store.Query{Kind: q.Kind, ByName: q.ByName}) {
		return // it was restricted further
	}
	for _, name := range names {
		m.complete[rootOf(q.Kind, name)] = true
	}
}

func (m *memory) rememberHosts(hosts []string, list []model.Object) {
	for _, name := range hosts {
		m.hosts[strings.ToLower(name)] = nil
	}
	for _, obj := range list {
		name := host(obj.(*model.Service))
		m.hosts[name] = append(m.hosts[name], obj.Key())
	}
}
