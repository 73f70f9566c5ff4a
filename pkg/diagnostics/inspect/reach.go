package inspect

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// reach says where an object has an effect.
type reach struct {
	// hosts are the services that the object is a part of.
	hosts map[string]bool
	// proxies are the proxies with such a service, sorted.
	proxies []string
}

// has reports whether an object is one of the hosts.
func (in *reach) has(k model.Key) bool { return k.Kind == model.KindService && in.hosts[k.Name()] }

// reaches returns where each object has an effect. The number of queries does not
// depend on the number of objects.
func reaches(r store.Reader, objs []model.Object) ([]*reach, error) {
	keys := make([]model.Key, len(objs))
	for i, o := range objs {
		keys[i] = o.Key()
	}
	graph := store.NewGraph(r)
	// The graph reads all objects together, and can then answer for each.
	if _, err := reachOf(graph, keys...); err != nil {
		return nil, err
	}
	list := make([]*reach, len(keys))
	for i, key := range keys {
		var err error
		if list[i], err = reachOf(graph, key); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func reachOf(graph model.Graph, keys ...model.Key) (*reach, error) {
	reached, err := model.Reach(graph, keys)
	if err != nil {
		return nil, err
	}
	served, err := reached.ServedBy(graph)
	if err != nil {
		return nil, err
	}
	found := &reach{hosts: map[string]bool{}}
	for proxy := range reached.Proxies {
		found.proxies = append(found.proxies, proxy)
	}
	for service := range reached.Services {
		found.hosts[service] = true
		found.proxies = append(found.proxies, served[service]...)
	}
	slices.Sort(found.proxies)
	found.proxies = slices.Compact(found.proxies)
	return found, nil
}

// serviceOf returns the service that a service or a part of one belongs to.
func serviceOf(k model.Key) model.Key { return model.ServiceKey(k.Part(model.KindService)) }

// usedByLink returns the object that a link attaches.
func usedByLink(l model.Object) model.Key { return l.Key().Attached() }
