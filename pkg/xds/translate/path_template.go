package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchtemplatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	rewritetemplatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/rewrite/uri_template/v3"
)

func matchTemplate(out *routev3.RouteMatch, template string) error {
	packed, err := pack(&matchtemplatev3.UriTemplateMatchConfig{PathTemplate: template})
	out.PathSpecifier = &routev3.RouteMatch_PathMatchPolicy{PathMatchPolicy: &corev3.TypedExtensionConfig{
		Name: "envoy.path.match.uri_template.uri_template_matcher", TypedConfig: packed,
	}}
	return err
}

// rewriteTemplate makes the upstream's path from the variables of the route's template. An empty template leaves
// the path.
func rewriteTemplate(out *routev3.RouteAction, template string) error {
	if template == "" {
		return nil
	}
	packed, err := pack(&rewritetemplatev3.UriTemplateRewriteConfig{PathTemplateRewrite: template})
	out.PathRewritePolicy = &corev3.TypedExtensionConfig{
		Name: "envoy.path.rewrite.uri_template.uri_template_rewriter", TypedConfig: packed,
	}
	return err
}
