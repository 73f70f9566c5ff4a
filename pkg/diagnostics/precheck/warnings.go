package precheck

import (
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// maxAttachments bounds the work of Warnings. If a transaction touches more places of filters, only the status shows
// their conditions.
const maxAttachments = 200

// Warnings returns what a transaction has written that works, but probably not as intended: upstreams that name the
// gateway itself, certificates that are not valid or not for the services that have them, logins that do not end or
// protect little, lists of addresses that clients can evade, filters that do not fit their place, and rate-limit
// filters that limit nothing.
func (rules Rules) Warnings(r store.Reader, written store.Changes) ([]string, error) {
	addresses, err := rules.addressWarnings(r, written)
	if err != nil {
		return nil, err
	}
	certificates, err := rules.certificateWarnings(r, written)
	if err != nil {
		return nil, err
	}
	logins, err := rules.loginWarnings(r, written)
	if err != nil {
		return nil, err
	}
	clients, err := ipWarnings(r, written)
	if err != nil {
		return nil, err
	}
	policies, err := policyWarnings(r, written)
	if err != nil {
		return nil, err
	}
	exempt, err := exemptWarnings(r, written)
	if err != nil {
		return nil, err
	}
	unlimited, err := limitWarnings(r, written)
	return slices.Concat(addresses, certificates, logins, clients, policies, exempt, unlimited), err
}

// exemptWarnings warns of services that are exempt from filters that do not exist.
func exemptWarnings(r store.Reader, written store.Changes) (list []string, err error) {
	asked := 0
	for c, err := range written(model.KindService) {
		if err != nil {
			return nil, err
		}
		svc, ok := c.After.(*model.Service)
		if !ok {
			continue
		}
		for _, name := range svc.ExemptFilters {
			if asked++; asked > maxAttachments {
				return list, nil
			}
			_, found, err := find[*model.Filter](r, model.FilterKey(name))
			if err != nil {
				return nil, err
			}
			if !found {
				list = append(list, c.Key.Path()+": Exempt_filters names filter "+name+", which does not exist: check the spelling")
			}
		}
	}
	return list, nil
}

// limitWarnings warns of rate-limit filters that limit nothing because of a transaction: those that it wrote or
// attached, and those whose global configs it changed.
func limitWarnings(r store.Reader, written store.Changes) ([]string, error) {
	w := warner{checker: checker{reader: r}, attachments: map[model.Key]bool{}}
	globals := false
	for c, err := range written(model.KindFilter, model.KindRouteFilter, model.KindServiceFilter, model.KindProxyFilter, model.KindGlobalConfig,
		model.KindProxyGlobalConfig) {
		if err != nil {
			return nil, err
		}
		switch c.Key.Kind {
		case model.KindFilter:
			if c.After != nil {
				err = w.addLinks([]model.Key{c.Key}, true)
			}
		case model.KindRouteFilter, model.KindServiceFilter, model.KindProxyFilter:
			if c.After != nil {
				w.attachments[c.Key] = true
			}
		case model.KindGlobalConfig, model.KindProxyGlobalConfig:
			globals = true
		}
		if err != nil || len(w.attachments) > maxAttachments {
			return nil, err
		}
	}
	if globals {
		if err := w.addLinks(nil, false); err != nil {
			return nil, err
		}
	}
	if len(w.attachments) == 0 || len(w.attachments) > maxAttachments {
		return nil, nil
	}
	return w.warnings(written)
}

type warner struct {
	checker
	// attachments are the links of filters to check. The value is true if the transaction wrote the filter or the link.
	// Warnings then include problems that existed before.
	attachments map[model.Key]bool
}

// addLinks adds the links to filters; to all filters if filters is empty.
func (w warner) addLinks(filters []model.Key, wrote bool) error {
	for _, kind := range []model.Kind{model.KindRouteFilter, model.KindServiceFilter, model.KindProxyFilter} {
		links, err := w.reader.List(store.Query{Kind: kind, To: filters, Limit: maxAttachments + 1})
		if err != nil {
			return err
		}
		for _, l := range links {
			w.attachments[l.Key()] = w.attachments[l.Key()] || wrote
		}
	}
	return nil
}

func (w warner) warnings(written store.Changes) ([]string, error) {
	after, err := readInForce(w.reader)
	if err != nil {
		return nil, err
	}
	before, err := after.before(written)
	if err != nil {
		return nil, err
	}
	attachments, proxies := map[model.Key]*attachment{}, map[string]bool{}
	for k := range w.attachments {
		p, err := w.attachment(k)
		if err != nil {
			return nil, err
		}
		if p != nil {
			attachments[k] = p
			for _, name := range p.proxies {
				proxies[name] = true
			}
		}
	}
	were, are := before.trees(proxies), after.trees(proxies)
	advisor := limits.NewAdvisor()
	var list []string
	for _, k := range slices.SortedFunc(maps.Keys(attachments),
		func(a, b model.Key) int { return strings.Compare(a.Path(), b.Path()) }) {
		had := map[string]bool{}
		if !w.attachments[k] {
			for _, c := range attachments[k].advise(advisor, k, were) {
				had[c.Message] = true
			}
		}
		for _, c := range attachments[k].advise(advisor, k, are) {
			if !had[c.Message] {
				list = append(list, k.Path()+" "+c.Message)
			}
		}
	}
	return list, nil
}

// attachment is where a filter is attached.
type attachment struct {
	filter   *model.ParsedFilter
	forwards bool
	proxies  []string
}

// advise returns why the filter limits nothing, with proxies as in trees.
func (p *attachment) advise(
	advisor limits.Advisor, link model.Key, trees map[string]*model.ProxyTree,
) []model.Condition {
	proxies := make([]*model.ProxyTree, len(p.proxies))
	for i, name := range p.proxies {
		proxies[i] = trees[name]
	}
	return advisor.Advise(link, p.filter, p.forwards, limits.ScopesOf(p.filter, proxies))
}

// attachment returns the attachment of a link; nil means that it needs no warning.
func (w warner) attachment(link model.Key) (*attachment, error) {
	filter, err := store.Get[*model.Filter](w.reader, link.Attached())
	switch {
	case model.IsKind(err, model.NotFound):
		return nil, nil // deleted again in the same transaction
	case err != nil:
		return nil, err
	case filter.TypeName() != model.FilterRateLimit:
		return nil, nil
	}
	p := &attachment{filter: filter.Parse()}
	service := link.Part(model.KindService)
	if p.proxies, err = w.proxiesOf(link, 0); err != nil || len(p.proxies) == 0 {
		return nil, err
	}
	if link.Kind == model.KindProxyFilter {
		p.forwards = true // some service has an upstream
		return p, nil
	}
	routes := []model.Key{link.Owner()}
	if link.Kind == model.KindServiceFilter {
		all, err := w.reader.List(store.Query{
			Kind: model.KindRoute, To: []model.Key{model.ServiceKey(service)}, Limit: maxAttachments,
		})
		if err != nil || len(all) == 0 {
			return nil, err
		}
		routes = routes[:0]
		for _, r := range all {
			routes = append(routes, r.Key())
		}
	}
	for _, route := range routes {
		if p.forwards, err = w.hasUpstream(route); p.forwards || err != nil {
			break
		}
	}
	return p, err
}

// proxiesOf returns the proxies on which the filter of a link applies, at most limit; 0 means all.
func (w warner) proxiesOf(link model.Key, limit int) (names []string, err error) {
	if link.Kind == model.KindProxyFilter {
		return []string{link.Owner().Name()}, nil
	}
	links, err := store.List[*model.ProxyService](w.reader, store.Query{
		Kind: model.KindProxyService, To: []model.Key{model.ServiceKey(link.Part(model.KindService))}, Limit: limit,
	})
	for _, l := range links {
		names = append(names, l.Proxy)
	}
	return names, err
}

// hasUpstream reports whether a route has an upstream to forward to.
func (w warner) hasUpstream(route model.Key) (bool, error) {
	n := newExcerpt(w.reader, map[model.Key][]model.Object{})
	if err := n.addOwners([]model.Key{route}); err != nil {
		return false, err
	}
	tree := n.routes(n.config())[route]
	return tree != nil && pipeline.Forwards(tree), nil
}

// globalConfigs contains the global configs and their links to proxies.
type globalConfigs map[model.Key]model.Object

func readInForce(r store.Reader) (globalConfigs, error) {
	h := globalConfigs{}
	for _, kind := range []model.Kind{model.KindGlobalConfig, model.KindProxyGlobalConfig} {
		list, err := r.List(store.Query{Kind: kind})
		if err != nil {
			return h, err
		}
		for _, obj := range list {
			h[obj.Key()] = obj
		}
	}
	return h, nil
}

// before returns h without what a transaction has written.
func (h globalConfigs) before(written store.Changes) (globalConfigs, error) {
	old := maps.Clone(h)
	seen := map[model.Key]bool{}
	for w, err := range written(model.KindGlobalConfig, model.KindProxyGlobalConfig) {
		if err != nil {
			return old, err
		}
		if seen[w.Key] {
			continue
		}
		seen[w.Key] = true
		delete(old, w.Key)
		if w.Before != nil {
			old[w.Key] = w.Before
		}
	}
	return old, nil
}

// trees returns proxies with the global configs that apply to them, by name.
func (h globalConfigs) trees(proxies map[string]bool) map[string]*model.ProxyTree {
	change := model.Change{Full: true}
	for name := range proxies {
		change.Entries = append(change.Entries, model.Entry{Key: model.ProxyKey(name), Object: &model.Proxy{Name: name}})
	}
	for key, obj := range h {
		change.Entries = append(change.Entries, model.Entry{Key: key, Object: obj})
	}
	config := model.NewConfig()
	config.Apply(change)
	trees := make(map[string]*model.ProxyTree, len(proxies))
	for name := range proxies {
		trees[name] = config.Proxy(name)
	}
	return trees
}
