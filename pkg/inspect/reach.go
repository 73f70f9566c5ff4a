package inspect

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// manyServices is from how many services on all links of proxies are read and
// not those of the services: a query has only so many arguments.
const manyServices = 500

// reach says where an object has an effect.
type reach struct {
	// hosts are the services that the object is a part of.
	hosts map[string]bool
	// proxies are those that have such a service, sorted.
	proxies []string
}

// has reports whether an object is one of the hosts.
func (in *reach) has(k model.Key) bool { return k.Kind == model.KindService && in.hosts[k.Name()] }

// reaches finds where each of some objects of one kind has an effect, with a
// number of queries that does not depend on how many they are.
func reaches(r store.Reader, kind model.Kind, objs []model.Object) (map[model.Key]*reach, error) {
	found := make(map[model.Key]*reach, len(objs))
	for _, o := range objs {
		found[o.Key()] = &reach{hosts: map[string]bool{}}
	}
	if len(objs) == 0 {
		return found, nil
	}
	var err error
	switch kind {
	case model.KindProxy:
		for k, f := range found {
			f.proxies = []string{k.Name()}
		}
		return found, nil
	case model.KindGlobalConfig:
		return found, reachOfGlobalConfigs(r, found)
	case model.KindService, model.KindRoute:
		for k, f := range found {
			f.hosts[serviceOf(k).Name()] = true
		}
	case model.KindUpstream:
		err = addHosts(r, found, themselves(found), model.KindRouteUpstream)
	case model.KindFilter:
		err = addHosts(r, found, themselves(found), model.KindRouteFilter, model.KindServiceFilter)
	case model.KindSecret:
		err = reachOfSecrets(r, found)
	}
	if err != nil {
		return nil, err
	}
	return found, addProxies(r, found)
}

// themselves says that objects are used under their own keys.
func themselves(found map[model.Key]*reach) map[model.Key][]model.Key {
	as := make(map[model.Key][]model.Key, len(found))
	for k := range found {
		as[k] = []model.Key{k}
	}
	return as
}

// addHosts follows links of some kinds. as has, for an object that is attached,
// the objects whose reach that is.
func addHosts(r store.Reader, found map[model.Key]*reach, as map[model.Key][]model.Key, kinds ...model.Kind) error {
	if len(as) == 0 {
		return nil
	}
	for _, kind := range kinds {
		q := store.Query{Kind: kind}
		if len(as) == 1 {
			for k := range as {
				restrictTo(&q, k)
			}
		}
		links, err := r.List(q)
		if err != nil {
			return err
		}
		for _, l := range links {
			for _, k := range as[usedByLink(l)] {
				found[k].hosts[serviceOf(l.Owner()).Name()] = true
			}
		}
	}
	return nil
}

// restrictTo selects the links that attach one object.
func restrictTo(q *store.Query, k model.Key) {
	switch k.Kind {
	case model.KindUpstream:
		q.Upstream = k.Name()
	case model.KindFilter:
		q.Filter = k.Name()
	case model.KindSecret:
		q.Secret = k.Name()
	}
}

// reachOfSecrets follows what attaches secrets, and what names them.
func reachOfSecrets(r store.Reader, found map[model.Key]*reach) error {
	if err := addHosts(r, found, themselves(found), model.KindServiceSecret); err != nil {
		return err
	}
	through := map[model.Kind][]model.Kind{
		model.KindUpstream: {model.KindRouteUpstream},
		model.KindFilter:   {model.KindRouteFilter, model.KindServiceFilter},
	}
	for kind, links := range through {
		q := store.Query{Kind: kind}
		if len(found) == 1 {
			for k := range found {
				q.Uses = k
			}
		}
		users, err := r.List(q)
		if err != nil {
			return err
		}
		as := map[model.Key][]model.Key{}
		for _, u := range users {
			for _, used := range u.Uses() {
				if found[used] != nil {
					as[u.Key()] = append(as[u.Key()], used)
				}
			}
		}
		if err := addHosts(r, found, as, links...); err != nil {
			return err
		}
	}
	return nil
}

// reachOfGlobalConfigs: one that is attached to no proxy holds for all.
func reachOfGlobalConfigs(r store.Reader, found map[model.Key]*reach) error {
	links, err := r.List(store.Query{Kind: model.KindProxyGlobalConfig})
	if err != nil {
		return err
	}
	for _, l := range links {
		if f := found[usedByLink(l)]; f != nil {
			f.proxies = append(f.proxies, l.Owner().Name())
		}
	}
	proxies, err := r.List(store.Query{Kind: model.KindProxy})
	if err != nil {
		return err
	}
	for _, f := range found {
		if len(f.proxies) == 0 {
			for _, p := range proxies {
				f.proxies = append(f.proxies, p.Key().Name())
			}
		}
		slices.Sort(f.proxies)
	}
	return nil
}

// addProxies finds the proxies that have the hosts.
func addProxies(r store.Reader, found map[model.Key]*reach) error {
	all := map[string]bool{}
	for _, f := range found {
		maps.Copy(all, f.hosts)
	}
	if len(all) == 0 {
		return nil
	}
	q := store.Query{Kind: model.KindProxyService}
	if len(all) <= manyServices {
		q.Services = slices.Sorted(maps.Keys(all))
	}
	links, err := r.List(q)
	if err != nil {
		return err
	}
	of := map[string][]string{}
	for _, l := range links {
		service := usedByLink(l).Name()
		of[service] = append(of[service], l.Owner().Name())
	}
	for _, f := range found {
		for host := range f.hosts {
			f.proxies = append(f.proxies, of[host]...)
		}
		slices.Sort(f.proxies)
		f.proxies = slices.Compact(f.proxies)
	}
	return nil
}

// serviceOf is the service that a service or a part of one belongs to.
func serviceOf(k model.Key) model.Key { return model.ServiceKey(k.Part(model.KindService)) }

// usedByLink is the object that a link attaches.
func usedByLink(l model.Object) model.Key { return l.Uses()[0] }
