package explain

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchtemplatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	rewritetemplatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/rewrite/uri_template/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// templateOf returns the template of a route; nil if the route has none.
func templateOf(m *routev3.RouteMatch) (*model.PathTemplate, error) {
	var config matchtemplatev3.UriTemplateMatchConfig
	if err := m.GetPathMatchPolicy().GetTypedConfig().UnmarshalTo(&config); err != nil {
		return nil, fmt.Errorf("reading the path template: %w", err)
	}
	t, err := model.ParsePathTemplate(config.GetPathTemplate())
	if err != nil {
		return nil, fmt.Errorf("reading the path template %q: it %w", config.GetPathTemplate(), err)
	}
	return t, nil
}

// rewriteByTemplate returns the path that a template makes from the variables of the
// route's template.
func rewriteByTemplate(s subject, r *routev3.Route) (string, error) {
	var to rewritetemplatev3.UriTemplateRewriteConfig
	if err := r.GetRoute().GetPathRewritePolicy().GetTypedConfig().UnmarshalTo(&to); err != nil {
		return "", fmt.Errorf("reading the rewrite of route %q: %w", r.GetName(), err)
	}
	t, err := templateOf(r.GetMatch())
	if err != nil {
		return "", fmt.Errorf("reading the rewrite of route %q: %w", r.GetName(), err)
	}
	return t.Rewrite(to.GetPathTemplateRewrite(), s.path), nil
}
