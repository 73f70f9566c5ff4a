package acme

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// set is the part of the configuration that says which certificates are wanted.
type set struct {
	services map[string]*model.Service
	auto     map[string]bool // services with Certificate=auto
	secrets  map[string]*model.Secret
	attached map[string]map[string]bool // secrets by service
	proxies  map[string]map[string]bool // by service
	configs  map[string]*model.ParsedGlobalConfig
	// own are the proxies of each global config that is attached to some.
	own map[string]map[string]bool
}

func newSet() *set {
	return &set{
		services: map[string]*model.Service{}, auto: map[string]bool{}, secrets: map[string]*model.Secret{}, attached: map[string]map[string]bool{},
		proxies: map[string]map[string]bool{}, configs: map[string]*model.ParsedGlobalConfig{}, own: map[string]map[string]bool{},
	}
}

// apply reports whether anything changed.
func (s *set) apply(change model.Change) (changed bool) {
	if change.Full {
		*s = *newSet()
	}
	for _, e := range change.Entries {
		changed = s.put(e) || changed
	}
	return changed || change.Full
}

func (s *set) put(e model.Entry) bool {
	name := e.Key.Name()
	switch e.Key.Kind {
	case model.KindService:
		delete(s.services, name)
		delete(s.auto, name)
		if svc, ok := e.Object.(*model.Service); ok {
			s.services[name] = svc
			if svc.IsAutomatic() {
				s.auto[name] = true
			}
		}
	case model.KindSecret:
		delete(s.secrets, name)
		if secret, ok := e.Object.(*model.Secret); ok && secret.Cert != "" {
			s.secrets[name] = secret
		}
	case model.KindServiceSecret:
		link(s.attached, e.Key.Owner().Name(), name, e.Object != nil)
	case model.KindProxyService:
		link(s.proxies, name, e.Key.Owner().Name(), e.Object != nil)
	case model.KindGlobalConfig:
		delete(s.configs, name)
		if g, ok := e.Object.(*model.GlobalConfig); ok && g.TypeName() == model.GlobalConfigACME {
			s.configs[name] = g.Parse()
		}
	case model.KindProxyGlobalConfig:
		link(s.own, name, e.Key.Owner().Name(), e.Object != nil)
	default:
		return false
	}
	return true
}

func link(all map[string]map[string]bool, from, to string, is bool) {
	if !is {
		if delete(all[from], to); len(all[from]) == 0 {
			delete(all, from)
		}
		return
	}
	if all[from] == nil {
		all[from] = map[string]bool{}
	}
	all[from][to] = true
}

// hosts are those of all services: their certificates are kept, even if they are not used now.
func (s *set) hosts() map[string]bool {
	hosts := make(map[string]bool, len(s.services))
	for _, svc := range s.services {
		hosts[strings.ToLower(svc.FQDN)] = true
	}
	return hosts
}

// authority is what is ordered from.
type authority struct {
	name   string // of the global config
	config *model.ACMEConfig
	ca     *model.Secret // nil means the authorities of the system
	// dnsCA verifies the webhook; nil means the authorities of the system.
	dnsCA *model.Secret
}

// wanted is a certificate that a service needs.
type wanted struct {
	service *model.Service
	host    string
	from    *authority
	// byHand says that an attached certificate is used. problem is why none can be ordered, in a sentence; empty means that
	// one can.
	byHand  bool
	problem string
}

// wanted lists the certificates, by the names of the services. Those of one host have one authority. program is what writes
// records into DNS; empty means none.
func (s *set) wanted(program string) []wanted {
	var list []wanted
	of := map[string]*authority{}
	names := slices.Sorted(maps.Keys(s.auto))
	if len(s.configs) > 0 { // one of them may be for every service
		names = slices.Sorted(maps.Keys(s.services))
	}
	for _, name := range names {
		svc := s.services[name]
		if svc.Certificate == model.CertificateManual || svc.NotAutomatic() != "" {
			continue
		}
		w := wanted{service: svc, host: strings.ToLower(svc.FQDN)}
		w.from, w.problem = s.authorityOf(name)
		if !s.auto[name] && (w.from == nil || !w.from.config.EveryService || w.noHook(program) != "") {
			continue
		}
		if first := of[w.host]; first != nil {
			w.from, w.problem = first, ""
		} else if w.from != nil {
			of[w.host] = w.from
		}
		if w.problem == "" {
			w.problem = w.noHook(program)
		}
		w.byHand = model.ByHand(svc, s.secretsOf(name))
		list = append(list, w)
	}
	return list
}

func (s *set) secretsOf(service string) (list []*model.Secret) {
	for name := range s.attached[service] {
		if secret := s.secrets[name]; secret != nil {
			list = append(list, secret)
		}
	}
	return list
}

// authorityOf returns the authority of the first proxy of a service, by name, that has one.
func (s *set) authorityOf(service string) (*authority, string) {
	if len(s.proxies[service]) == 0 {
		return nil, "no proxy serves it: attach it to one"
	}
	problem := "no proxy of it has a global config of type " + model.GlobalConfigACME + ": create one"
	for _, proxy := range slices.Sorted(maps.Keys(s.proxies[service])) {
		for _, name := range slices.Sorted(maps.Keys(s.configs)) {
			if len(s.own[name]) > 0 && !s.own[name][proxy] {
				continue
			}
			a, why := s.authority(name)
			if a != nil {
				return a, ""
			}
			problem = why
			break // the first one applies
		}
	}
	return nil, problem
}

func (s *set) authority(name string) (*authority, string) {
	g := s.configs[name]
	config, ok := g.Spec.(*model.ACMEConfig)
	if !ok || g.Fault != nil {
		return nil, fmt.Sprintf("globalconfig %s cannot be read: %v", name, g.Fault)
	}
	a := &authority{name: name, config: config}
	if ca := config.CACertificate; ca != "" {
		if a.ca = s.secrets[ca]; a.ca == nil {
			return nil, fmt.Sprintf("globalconfig %s names the secret %s, which has no certificate", name, ca)
		}
	}
	if config.DNS != nil {
		a.dnsCA = s.secrets[config.DNS.CACertificate]
	}
	return a, ""
}

// firstHook returns the first authority by name that can write records; nil if none can.
func (s *set) firstHook(program string) *authority {
	for _, name := range slices.Sorted(maps.Keys(s.configs)) {
		if a, _ := s.authority(name); a != nil && a.noHook(program) == "" {
			return a
		}
	}
	return nil
}
