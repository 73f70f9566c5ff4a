package providers

import (
	"cmp"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

// set is what the configuration contains about logins. It is for one goroutine. Use newSet.
type set struct {
	// logins are the sources of filters and global configs that need some.
	logins map[model.Key][]model.ProviderSource
	// places has the proxies, services and routes with each filter, and tokens the filters that verify
	// the tokens of requests.
	places    map[string]map[model.Key]bool
	tokens    map[model.Key]bool
	upstreams map[string]*model.Upstream
	secrets   map[string]*model.Secret
}

func newSet() *set {
	return &set{
		logins: map[model.Key][]model.ProviderSource{}, places: map[string]map[model.Key]bool{}, tokens: map[model.Key]bool{},
		upstreams: map[string]*model.Upstream{}, secrets: map[string]*model.Secret{},
	}
}

func (s *set) apply(change model.Change) {
	if change.Full {
		*s = *newSet()
	}
	for _, e := range change.Entries {
		s.applyEntry(e)
	}
}

func (s *set) applyEntry(e model.Entry) {
	name := e.Key.Name()
	switch e.Key.Kind {
	case model.KindFilter, model.KindGlobalConfig:
		delete(s.logins, e.Key)
		delete(s.tokens, e.Key)
		if sources := sourcesOf(e.Object); len(sources) > 0 {
			s.logins[e.Key] = sources
			if f, ok := e.Object.(*model.Filter); ok && slices.Contains([]string{model.FilterJWT, model.FilterAnyOf}, f.TypeName()) {
				s.tokens[e.Key] = true
			}
		}
	case model.KindServiceFilter, model.KindRouteFilter, model.KindProxyFilter:
		filter, place := e.Key.Attached().Name(), e.Key.Owner()
		if e.Object == nil {
			if delete(s.places[filter], place); len(s.places[filter]) == 0 {
				delete(s.places, filter)
			}
			return
		}
		if s.places[filter] == nil {
			s.places[filter] = map[model.Key]bool{}
		}
		s.places[filter][place] = true
	case model.KindUpstream:
		delete(s.upstreams, name)
		if u, ok := e.Object.(*model.Upstream); ok {
			s.upstreams[name] = u
		}
	case model.KindSecret:
		delete(s.secrets, name)
		if secret, ok := e.Object.(*model.Secret); ok {
			s.secrets[name] = secret
		}
	}
}

// sourcesOf returns the providers that an object needs.
func sourcesOf(o model.Object) []model.ProviderSource {
	switch o := o.(type) {
	case *model.Filter:
		if p := o.Parse(); p.Fault == nil {
			return model.SourcesOf(p.Spec)
		}
	case *model.GlobalConfig:
		if p := o.Parse(); p.Fault == nil {
			return model.SourcesOf(p.Spec)
		}
	}
	return nil
}

// wanted returns the objects that need each source, sorted: global configs, and filters that
// a service or a route has.
func (s *set) wanted() map[model.ProviderSource][]model.Key {
	wanted := map[model.ProviderSource][]model.Key{}
	for key, sources := range s.logins {
		for _, source := range sources {
			if s.isInUse(key) {
				wanted[source] = append(wanted[source], key)
			}
		}
	}
	for _, keys := range wanted {
		slices.SortFunc(keys, func(a, b model.Key) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text(), b.Text()))
		})
	}
	return wanted
}

// isInUse reports whether an object is a global config, or a filter that a service or a route has.
func (s *set) isInUse(key model.Key) bool {
	return key.Kind != model.KindFilter || len(s.places[key.Name()]) > 0
}

// via returns the current upstream of a source; nil if it names none, or one that does not
// exist.
func (s *set) via(source model.ProviderSource) *oidc.Via {
	u := s.upstreams[source.Upstream]
	if source.Upstream == "" || u == nil {
		return nil
	}
	v := &oidc.Via{Upstream: u, Secrets: map[string]*model.Secret{}}
	for _, key := range u.Names() {
		if secret := s.secrets[key.Name()]; secret != nil {
			v.Secrets[secret.Name] = secret
		}
	}
	return v
}

// sameVia reports whether both reach a provider in the same way.
func sameVia(a, b *oidc.Via) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Upstream != b.Upstream || len(a.Secrets) != len(b.Secrets) {
		return false
	}
	for name, secret := range a.Secrets {
		if b.Secrets[name] != secret {
			return false
		}
	}
	return true
}
