package model

import (
	"maps"
	"slices"
)

// List returns a list, or nil.
func (c *Config) List(name string) *ParsedList {
	l, _ := c.objects[ListKey(name)].(*ParsedList)
	return l
}

// isAddresses reports whether an object is a list of addresses, or none.
func isAddresses(obj Object) bool {
	l, ok := obj.(*ParsedList)
	return obj == nil || ok && l.Type == ListAddresses
}

// reachConnections adds the services of connections that compare lists of addresses: their listeners have the addresses.
// Requests are compared with a list that Envoys have once, apart from the services.
func (c *Config) reachConnections(lists []Key, reached Reached) {
	if len(lists) == 0 {
		return
	}
	naming, _ := Reach(c, lists) // memory does not fail
	isL4 := func(service string) bool {
		s, ok := c.objects[ServiceKey(service)].(*Service)
		return ok && s.IsL4()
	}
	for name, s := range naming.Services {
		if isL4(name) {
			reached.Services[name] = s
		}
	}
	for name, p := range naming.Proxies {
		for k := range c.children[ProxyKey(name)].all {
			if k.Kind == KindProxyService && isL4(k.Name()) {
				reached.Proxies[name] = p
			}
		}
	}
}

func listNames(keys []Key) []string {
	names := map[string]bool{}
	for _, key := range keys {
		names[key.Name()] = true
	}
	return slices.Sorted(maps.Keys(names))
}
