package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// jsonObject is the configuration of a filter of the model, with the fields that are set.
type jsonObject = map[string]any

// ruleFilters makes the filters of a rule. It reports whether all of them are supported.
func (s *scope) ruleFilters(all *rulesReading, r *ruleReading, spec *gwapi.HTTPRouteRule) bool {
	headers := jsonObject{}
	for i := range spec.Filters {
		f := &spec.Filters[i]
		at := fmt.Sprintf("%s.filters[%d]", r.at, i)
		ok := true
		switch {
		case f.Type == gwapi.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			addHeaders(headers, "request", f.RequestHeaderModifier)
		case f.Type == gwapi.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			addHeaders(headers, "response", f.ResponseHeaderModifier)
		case f.Type == gwapi.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
			ok = s.redirect(all, r, at, spec, f.RequestRedirect)
		case f.Type == gwapi.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
			ok = rewrite(all, r, at, spec, f.URLRewrite)
		case f.Type == gwapi.HTTPRouteFilterRequestMirror && f.RequestMirror != nil:
			ok = s.mirror(all, r, at, fmt.Sprintf("mirror-%d", i), f.RequestMirror)
		case f.Type == gwapi.HTTPRouteFilterCORS && f.CORS != nil:
			ok = s.addFilter(all, r, at+".cors", "cors", model.FilterCORS, corsOf(f.CORS))
		case f.Type == gwapi.HTTPRouteFilterExtensionRef && f.ExtensionRef != nil && f.ExtensionRef.Group == gatewayv1.Group &&
			f.ExtensionRef.Kind == gatewayv1.KindRouteFilter:
			s.routeFilterOf(all, r, at+".extensionRef", gatewayv1.ObjectName(f.ExtensionRef.Name))
		default:
			all.refuse(at+".type", "filters of type %s are not supported", f.Type)
			ok = false
		}
		if !ok {
			return false
		}
	}
	if len(headers) > 0 {
		return s.addFilter(all, r, r.at+".filters", "headers", model.FilterHeaders, headers)
	}
	return true
}

// routeFilterOf adds a RouteFilter that a rule names. Without it, the rule is closed.
func (s *scope) routeFilterOf(all *rulesReading, r *ruleReading, at string, name gatewayv1.ObjectName) {
	var uses []filterUse
	var broken bool
	wrong := s.problemsOf(func() {
		uses, broken = s.filters(at, []gatewayv1.FilterReference{{Name: name}}, model.KindRoute)
	})
	if len(wrong) > 0 {
		all.lack(gwapi.RouteConditionReason(wrong[0].Reason), at, wrong[0].Message)
	}
	r.closed = r.closed || broken
	for _, u := range uses {
		r.filters = append(r.filters, filterUse{u.name, at})
	}
}

// addHeaders adds changes of headers to the configuration of a filter.
func addHeaders(config jsonObject, of string, f *gwapi.HTTPHeaderFilter) {
	changes := jsonObject{}
	for name, list := range map[string][]gwapi.HTTPHeader{"set": f.Set, "add": f.Add} {
		values := map[string]string{}
		for _, h := range list {
			if _, had := values[string(h.Name)]; !had {
				values[string(h.Name)] = h.Value
			}
		}
		if len(values) > 0 {
			changes[name] = values
		}
	}
	if len(f.Remove) > 0 {
		changes["remove"] = f.Remove
	}
	if len(changes) > 0 {
		config[of] = changes
	}
}

// isPrefixed reports whether all matches of a rule have a path prefix, which can be replaced.
func isPrefixed(spec *gwapi.HTTPRouteRule) bool {
	for _, m := range spec.Matches {
		if m.Path != nil && text(m.Path.Type, string(gwapi.PathMatchPathPrefix)) != string(gwapi.PathMatchPathPrefix) {
			return false
		}
	}
	return true
}

// redirect makes the filter of a redirect.
func (s *scope) redirect(all *rulesReading, r *ruleReading, at string, spec *gwapi.HTTPRouteRule, f *gwapi.HTTPRequestRedirectFilter) bool {
	config := jsonObject{"code": http.StatusFound}
	if f.StatusCode != nil {
		config["code"] = *f.StatusCode
	}
	if f.Scheme != nil {
		config["scheme"] = *f.Scheme
	}
	if f.Hostname != nil {
		config["host"] = string(*f.Hostname)
	}
	if f.Port != nil {
		config["port"] = *f.Port
	}
	if p := f.Path; p != nil {
		switch {
		case p.Type == gwapi.FullPathHTTPPathModifier && p.ReplaceFullPath != nil:
			config["path"] = absolute(*p.ReplaceFullPath)
		case p.Type == gwapi.PrefixMatchHTTPPathModifier && p.ReplacePrefixMatch != nil && isPrefixed(spec):
			config["prefix"] = absolute(*p.ReplacePrefixMatch)
		default:
			all.refuse(at+".requestRedirect.path", "only a prefix can be replaced in a match of a prefix")
			return false
		}
	}
	if len(config) == 1 {
		config["regex"], config["substitution"] = "^$", "/" // no path is empty: it stays
	}
	r.answers = true
	if !s.addFilter(all, r, at+".requestRedirect", "redirect", model.FilterRedirect, config) {
		return false
	}
	if f.Port == nil && f.Scheme == nil {
		r.keepsPort = &redirectToPort{config, len(r.filters) - 1}
	}
	return true
}

// redirectToPort is a redirect to the port at which the request came: its configuration without one, and its place among
// the filters of the rule.
type redirectToPort struct {
	config jsonObject
	at     int
}

// filtersFor returns the filters of a rule for requests at a port of the Gateway; 0 is the usual one.
func (s *scope) filtersFor(r *ruleReading, port int32) []filterUse {
	if r.keepsPort == nil || port == 0 {
		return r.filters
	}
	list, use := slices.Clone(r.filters), &r.filters[r.keepsPort.at]
	config := maps.Clone(r.keepsPort.config)
	config["port"] = port
	if text, err := json.Marshal(config); err == nil {
		f := &model.Filter{Name: fmt.Sprintf("%s-%d", use.name, port), Type: model.FilterRedirect, Config: model.JSON(text)}
		s.make(f, use.path)
		list[r.keepsPort.at].name = f.Name
	}
	return list
}

// absolute returns a path that begins with a slash.
func absolute(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// rewrite sets the rewrite of a rule.
func rewrite(all *rulesReading, r *ruleReading, at string, spec *gwapi.HTTPRouteRule, f *gwapi.HTTPURLRewriteFilter) bool {
	change := &model.Rewrite{Host: text(f.Hostname, "")}
	if p := f.Path; p != nil {
		switch {
		case p.Type == gwapi.FullPathHTTPPathModifier && p.ReplaceFullPath != nil:
			change.Regex, change.Substitution = "^/.*$", strings.ReplaceAll(absolute(*p.ReplaceFullPath), `\`, `\\`)
		case p.Type == gwapi.PrefixMatchHTTPPathModifier && p.ReplacePrefixMatch != nil && isPrefixed(spec):
			change.Prefix = absolute(*p.ReplacePrefixMatch)
		default:
			all.refuse(at+".urlRewrite.path", "only a prefix can be replaced in a match of a prefix")
			return false
		}
	}
	r.config.Rewrite = change
	return true
}

// corsOf returns the configuration of a filter for CORS.
func corsOf(f *gwapi.HTTPCORSFilter) jsonObject {
	origins := []any{}
	for _, o := range f.AllowOrigins {
		if before, after, wild := strings.Cut(string(o), "*"); wild && o != "*" {
			origins = append(origins, jsonObject{"regex": regexp.QuoteMeta(before) + ".+" + regexp.QuoteMeta(after)})
		} else {
			origins = append(origins, string(o))
		}
	}
	config := jsonObject{
		"origins": origins, "methods": append([]gwapi.HTTPMethodWithWildcard{}, f.AllowMethods...), "headers": f.AllowHeaders,
		"expose": f.ExposeHeaders, "max_age": f.MaxAge,
	}
	if f.MaxAge == 0 {
		config["max_age"] = 5 // the default of the API
	}
	if f.AllowCredentials != nil && *f.AllowCredentials {
		config["credentials"], config["any_origin_credentials"] = true, true
		// Browsers take it for a name then.
		config["expose"] = slices.DeleteFunc(slices.Clone(f.ExposeHeaders), func(h gwapi.HTTPHeaderName) bool { return h == "*" })
	}
	return config
}

// mirror makes the filter that copies requests. A backend that does not exist gets none.
func (s *scope) mirror(all *rulesReading, r *ruleReading, at, what string, f *gwapi.HTTPRequestMirrorFilter) bool {
	name, usable := s.backendRef(all, at+".requestMirror.backendRef", f.BackendRef, wish{grpc: s.of.Kind == KindGRPCRoute})
	if !usable {
		return true
	}
	config := jsonObject{"upstream": name, "strip_credentials": false}
	percent := 100.0
	if f.Percent != nil {
		percent = float64(*f.Percent)
	}
	if q := f.Fraction; q != nil {
		denominator := int32(100)
		if q.Denominator != nil {
			denominator = *q.Denominator
		}
		percent = float64(q.Numerator) / float64(max(denominator, 1)) * 100
	}
	if percent == 0 {
		return true
	}
	config["percent"] = percent
	return s.addFilter(all, r, at+".requestMirror", what, model.FilterMirror, config)
}
