package sqlstore

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// generationSize bounds the keys and hosts of a generation; tests set another bound.
const generationSize = 8192

// memory is what a writing transaction knows of the configuration from recent reads.
// Anything in neither generation must be read again.
type memory struct {
	young, old generation
	// size is the size of a generation.
	size int
}

// generation is what was learned in one span of the transaction.
type generation struct {
	// objects has nil for an object that does not exist.
	objects map[model.Key]model.Object
	// hosts has, for each host that was looked up, in lower case, the services that
	// have it.
	hosts map[string][]model.Key
}

func newGeneration() generation {
	return generation{objects: map[model.Key]model.Object{}, hosts: map[string][]model.Key{}}
}

func newMemory(size int) memory {
	return memory{young: newGeneration(), old: newGeneration(), size: size}
}

// full reports whether it is time to call age.
func (m *memory) full() bool { return len(m.young.objects)+len(m.young.hosts) >= m.size }

// age forgets the old generation and begins a new one. No row may be waiting to be
// sent: forgotten objects are read from the database again.
func (m *memory) age() { m.old, m.young = m.young, newGeneration() }

// recall returns an object, or nil if it does not exist, and whether the memory knows.
func (m *memory) recall(key model.Key) (obj model.Object, known bool) {
	if obj, known = m.young.objects[key]; known {
		return obj, true
	}
	if obj, known = m.old.objects[key]; known {
		m.young.objects[key] = obj
	}
	return obj, known
}

// change records that the transaction has replaced before with after.
func (m *memory) change(key model.Key, before, after model.Object) {
	m.young.objects[key] = after
	if old, ok := before.(*model.Service); ok {
		if list, asked := m.servicesOfHost(host(old)); asked {
			m.young.hosts[host(old)] = slices.DeleteFunc(slices.Clone(list), func(k model.Key) bool { return k == key })
		}
	}
	if svc, ok := after.(*model.Service); ok {
		if list, asked := m.servicesOfHost(host(svc)); asked {
			m.young.hosts[host(svc)] = append(slices.Clone(list), key)
		}
	}
}

func host(s *model.Service) string { return strings.ToLower(s.FQDN) }

// servicesOfHost returns the services of a host, and whether the memory knows them.
func (m *memory) servicesOfHost(name string) (keys []model.Key, known bool) {
	if keys, known = m.young.hosts[name]; !known {
		keys, known = m.old.hosts[name]
	}
	return keys, known
}

// remember keeps what a query has found.
func (m *memory) remember(list []model.Object) {
	if len(list) > m.size {
		return
	}
	for _, obj := range list {
		m.young.objects[obj.Key()] = copyOf(obj)
	}
}

// rememberHosts keeps which services some hosts have, in lower case.
func (m *memory) rememberHosts(hosts []string, services []*model.Service) {
	for _, name := range hosts {
		m.young.hosts[name] = nil
	}
	for _, svc := range services {
		m.young.objects[svc.Key()] = copyOf(svc)
		m.young.hosts[host(svc)] = append(m.young.hosts[host(svc)], svc.Key())
	}
}
