package precheck

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// identity is what the gateway may know about a client: verified claims, the client of an API key that is required, that
// of a key that is required or accepted, and the consumer.
type identity struct{ claims, client, anyClient, consumer bool }

// adviseAccess warns if nothing verifies the claims, or reads the API keys, that rules compare.
func (w warner) adviseAccess(link model.Key, f *model.Filter) (string, error) {
	spec, ok := f.Parse().Spec.(*model.RBACFilter)
	if !ok {
		return "", nil
	}
	var wants identity
	for _, r := range slices.Concat(spec.Allow, spec.Deny) {
		wants.claims = wants.claims || len(r.Claims) > 0
		wants.anyClient = wants.anyClient || len(r.Clients) > 0
		wants.consumer = wants.consumer || len(r.Consumers)+len(r.Groups) > 0
	}
	missing, route, err := w.unknown(link, wants)
	switch {
	case err != nil:
		return "", err
	case missing.claims:
		return "compares claims, but nothing on " + route +
			" verifies claims (a http_filter_jwt, or a login with issuer or jwks_uri): no request has any there, " +
			"so no rule with claims applies, neither in allow nor in deny", nil
	case missing.anyClient:
		return "compares clients, but nothing on " + route +
			" reads API keys (a http_filter_apikey, or a http_filter_anyof with apikey): no request has a client there, " +
			"so no rule with clients applies, neither in allow nor in deny", nil
	case missing.consumer:
		return "compares consumers, but no http_filter_consumer on " + route +
			" finds any: no rule with consumers or groups applies there, neither in allow nor in deny", nil
	}
	return "", nil
}

// adviseCounted warns if a limit counts by something that no filter provides.
func (w warner) adviseCounted(link model.Key, f *model.Filter) (string, error) {
	spec, ok := f.Parse().Spec.(*model.RateLimitFilter)
	if !ok {
		return "", nil
	}
	missing, route, err := w.unknown(link, countedBy(spec))
	switch {
	case err != nil:
		return "", err
	case missing.claims:
		return "counts by a claim, but nothing on " + route +
			" verifies claims (a http_filter_jwt, or a login with issuer or jwks_uri): it counts no request there", nil
	case missing.client:
		return "counts by the client of an API key, but no http_filter_apikey applies to " + route +
			": it counts no request there", nil
	case missing.consumer:
		return "counts by the consumer, but no http_filter_consumer applies to " + route + ": it counts no request there", nil
	}
	return "", nil
}

// countedBy returns what a filter counts by.
func countedBy(f *model.RateLimitFilter) (wants identity) {
	for _, d := range f.Descriptors {
		for _, e := range d {
			wants.claims = wants.claims || e.Kind == "claim"
			wants.client = wants.client || e.Kind == "api_client"
			wants.consumer = wants.consumer || e.Kind == "consumer"
		}
	}
	return wants
}

// unknown returns the part of an identity that nothing provides on a route of a link, and the first such route.
// For a link of a service it skips public routes, which require no credential on purpose.
func (w warner) unknown(link model.Key, wants identity) (missing identity, route string, err error) {
	if wants == (identity{}) {
		return missing, "", nil
	}
	ofService, err := w.identityOf(link)
	if err != nil {
		return missing, "", err
	}
	routes, err := w.routesOf(link)
	if err != nil {
		return missing, "", err
	}
	for _, r := range routes {
		public := r.Config.Public
		if public && link.Kind == model.KindServiceFilter {
			continue
		}
		own, err := w.filtersOf(store.Query{Kind: model.KindRouteFilter, To: []model.Key{r.Key()}})
		if err != nil {
			return missing, "", err
		}
		verifies := (ofService.claims || verifyTokens(own)) && !public
		missing = identity{
			claims:    wants.claims && !verifies,
			client:    wants.client && !ofService.client && !hasType(own, model.FilterAPIKey),
			anyClient: wants.anyClient && !ofService.anyClient && !readKeys(own),
			consumer:  wants.consumer && !ofService.consumer && !hasType(own, model.FilterConsumer),
		}
		if missing != (identity{}) {
			return missing, r.Key().Path(), nil
		}
	}
	return missing, "", nil
}

func hasType(filters []*model.Filter, kind string) bool {
	return slices.ContainsFunc(filters, func(f *model.Filter) bool { return f.TypeName() == kind })
}

// readKeys reports whether one of the filters requires or accepts API keys.
func readKeys(filters []*model.Filter) bool {
	return hasType(filters, model.FilterAPIKey) || slices.ContainsFunc(filters, func(f *model.Filter) bool {
		either, _ := f.Parse().Spec.(*model.AnyOfFilter)
		return either != nil && either.APIKey != nil
	})
}

// verifyTokens reports whether one of the filters accepts tokens.
func verifyTokens(filters []*model.Filter) bool {
	return slices.ContainsFunc(filters, func(f *model.Filter) bool {
		either, _ := f.Parse().Spec.(*model.AnyOfFilter)
		return f.TypeName() == model.FilterJWT || either != nil && either.JWT != nil
	})
}

// saysWho reports whether a filter of a service replaces the logins of its proxies.
func saysWho(f *model.Filter) bool {
	return slices.Contains([]string{model.FilterJWT, model.FilterBasicAuth, model.FilterAnyOf}, f.TypeName())
}

// identityOf returns what the service of a link learns about the client, including from the logins of its
// proxies. A service that no proxy serves yet may still get such a login.
func (w warner) identityOf(link model.Key) (identity, error) {
	service := model.ServiceKey(link.Part(model.KindService))
	filters, err := w.filtersOf(store.Query{Kind: model.KindServiceFilter, To: []model.Key{service}})
	if err != nil {
		return identity{}, err
	}
	out := identity{
		claims: verifyTokens(filters), client: hasType(filters, model.FilterAPIKey), anyClient: readKeys(filters),
		consumer: hasType(filters, model.FilterConsumer),
	}
	s, found, err := find[*model.Service](w.reader, service)
	if err != nil || !found || out.claims {
		return out, err
	}
	logins := &loginWarner{reader: w.reader, services: map[model.Key]bool{service: true}}
	h, err := logins.readLogins()
	if err != nil || h == nil {
		return out, err
	}
	holding := h.on(s)
	for key := range holding {
		l := h.logins[key]
		out.claims = out.claims || l.Issuer != "" || l.JWKSURI != ""
	}
	out.claims = out.claims || len(holding) == 0 && len(h.proxies[service]) == 0 && !s.Public && !h.replaced[service]
	return out, nil
}

// addBereft adds the filters of a service that may need what a detached filter provided about the client.
func (w warner) addBereft(link model.Key) error {
	f, found, err := find[*model.Filter](w.reader, link.Attached())
	if err != nil || !found || !saysWho(f) && !slices.Contains([]string{model.FilterOIDC, model.FilterAPIKey, model.FilterConsumer}, f.TypeName()) {
		return err
	}
	service := model.ServiceKey(link.Part(model.KindService))
	routes, err := w.reader.List(store.Query{Kind: model.KindRoute, To: []model.Key{service}, Limit: maxAttachments})
	if err != nil {
		return err
	}
	queries := []store.Query{{Kind: model.KindServiceFilter, To: []model.Key{service}, Limit: maxAttachments}}
	for _, r := range routes {
		queries = append(queries, store.Query{Kind: model.KindRouteFilter, To: []model.Key{r.Key()}, Limit: maxAttachments})
	}
	for _, q := range queries {
		links, err := w.reader.List(q)
		if err != nil {
			return err
		}
		for _, l := range links {
			f, found, err := find[*model.Filter](w.reader, l.Key().Attached())
			if err != nil {
				return err
			}
			if found && slices.Contains([]string{model.FilterRBAC, model.FilterRateLimit}, f.TypeName()) {
				w.attachments[l.Key()] = true
			}
		}
	}
	return nil
}
