package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

const routerFilter = "envoy.filters.http.router"

// knownFilter is an HTTP filter that this package knows.
type knownFilter struct {
	name string
	// several means that there may be more of the filter, called name/ and a word.
	several bool
	// pass reports whether a request passes the filter. If not, it ends with the answer, which a filter of filterType
	// gives. nil means that the filter never answers, or that it is not known when.
	pass       func(*Answer, *passed) (bool, error)
	filterType string
	// describe describes what the filter does with a request for which it is on; nil means that the
	// steps of the answer describe it.
	describe func(*Filter, passed) error
	// endpoint and describeForward are hooks of seam.Filter.
	endpoint        func(seam.Request) (string, error)
	describeForward func(*routev3.RouteAction) []string
	// foreign means that the filter's effect cannot be predicted.
	foreign bool
	// change returns a request as the filter passes it on, as far as that can be predicted.
	change func(seam.Request) (seam.Request, error)
	// replace is a hook of seam.Filter.
	replace func(seam.Request, int) (seam.Replacement, error)
	// identifies means that the filter asks who the client is. The answer to a request that comes as far as the first of
	// these lists all filters.
	identifies bool
}

// passed is the context in which a request passes a filter.
type passed struct {
	have    State
	request subject
	l       *hcmv3.HttpConnectionManager
	on      *hcmv3.HttpFilter
	vh      *routev3.VirtualHost
	route   *routev3.Route
}

// ownFilters are the filters that this package knows and that have no package in pkg/core/filter.
func ownFilters() []knownFilter {
	return []knownFilter{
		{name: hostFilter},    // passHost
		{name: anybodyFilter}, // endClosed
		{name: verifiedFilter, several: true},
		{name: rateLimitFilter, several: true, filterType: model.FilterRateLimit, describe: (*Filter).describeRateLimits},
		{name: claimLimitFilter, several: true, filterType: model.FilterRateLimit, describe: (*Filter).describeRateLimits},
		{name: hstsFilter, describe: (*Filter).describeHSTS},
		{name: translate.AltSvcFilter, describe: (*Filter).describeAltSvc},
		{name: routerFilter, describe: (*Filter).describeRouter},
	}
}

// knownBySeam returns a filter of pkg/core/filter.
func knownBySeam(f seam.Filter) knownFilter {
	known := knownFilter{
		name: f.Name, several: f.Several, foreign: f.Foreign, filterType: f.Type,
		change: f.Change, endpoint: f.Endpoint, describeForward: f.DescribeForward,
		identifies: f.Identifies, replace: f.Replace,
	}
	if f.Describe != nil {
		known.describe = func(to *Filter, p passed) (err error) {
			to.Message, err = f.Describe(p.seen(nil))
			return err
		}
	}
	if f.Refuse != nil {
		known.pass = func(a *Answer, p *passed) (bool, error) {
			if seam.IsOff(p.on, p.vh, p.route) {
				if f.Exempt != nil {
					f.Exempt(p.seen(a))
				}
				return true, nil
			}
			refusal, err := f.Refuse(p.seen(a))
			if refusal == nil || err != nil {
				return err == nil, err
			}
			a.FilterType, a.direct = refusal.Type, refusal.Direct
			if refusal.Details == "" {
				a.Body, a.Location = refusal.Body, refusal.Location
				a.endWith(refusal.Code, refusal.Status, cmp.Or(refusal.Step, "refused"), refusal.Message)
				return false, nil
			}
			return false, a.endReplied(p.l, refusal.Details, reply{refusal.Status, refusal.Body}, refusal.Code, refusal.Message)
		}
	}
	return known
}

// seen returns what the filters of pkg/core/filter get of a request. Their steps are those of the answer; nil means that
// they are not told.
func (p passed) seen(a *Answer) seam.Request {
	r := seam.Request{
		Where: p.have.Where, Headers: p.request.headers, Path: p.request.path, Query: p.request.query, Client: p.request.client,
		VirtualHost: p.vh, Route: p.route, On: p.on, Listener: p.l,
		Discovered: p.have.discovered, Step: func(string, string) {},
	}
	if a != nil {
		r.Step = a.step
	}
	return r
}

// passOn changes the request as the filter does.
func (f knownFilter) passOn(p *passed) error {
	if f.change == nil || seam.IsOff(p.on, p.vh, p.route) {
		return nil
	}
	changed, err := f.change(p.seen(nil))
	p.request.headers, p.request.path, p.request.query = changed.Headers, changed.Path, changed.Query
	return err
}

// catalog are all filters that this package knows.
var catalog = knownFilters() //nolint:gochecknoglobals // never written: a constant

func knownFilters() []knownFilter {
	list := ownFilters()
	for _, f := range filter.List() {
		if f.Listener != nil || f.Name == "" {
			list = append(list, knownBySeam(f))
		}
	}
	return list
}

// findKnown returns the known filter with a name.
func findKnown(name string) (knownFilter, bool) {
	at := slices.IndexFunc(catalog, func(f knownFilter) bool {
		return name == f.name || f.several && strings.HasPrefix(name, f.name+"/")
	})
	if at < 0 {
		return knownFilter{}, false
	}
	return catalog[at], true
}

// TypeOf returns the type of filters of the REST API that one of Envoy's filters is for; empty if it is for none.
func TypeOf(name string) string {
	known, _ := findKnown(name)
	return known.filterType
}

// isKnown reports whether this package has a row for a filter. isPredictable reports whether the
// effect of the filter can be predicted.
func isKnown(name string) bool {
	_, known := findKnown(name)
	return known
}

func isPredictable(name string) bool {
	known, ok := findKnown(name)
	return ok && !known.foreign
}

func (f *Filter) describeRouter(passed) error {
	f.Message = "forwards the request, or answers as the route says"
	return nil
}

// describeUnknown describes who turned an unknown filter on.
func (f *Filter) describeUnknown(p passed, off bool) {
	switch {
	case off:
		f.Message = "is off"
		return
	case p.route.GetTypedPerFilterConfig()[f.Name] != nil:
		f.Message = "is set by the route"
	case p.vh.GetTypedPerFilterConfig()[f.Name] != nil:
		f.Message = "is set by the service"
	default:
		f.Message = "is set by the listener"
	}
	f.Message += ", and explain does not know what it does"
}

// noteUnknown records the unknown filters that the request passes. Without a service or route, vh or r
// is nil.
func (a *Answer) noteUnknown(l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) {
	on := map[string]bool{} // filters of the listener, and recorded ones
	for _, f := range l.GetHttpFilters() {
		on[f.GetName()] = true
		if !isPredictable(f.GetName()) && !seam.IsOff(f, vh, r) {
			a.UnknownFilters = append(a.UnknownFilters, f.GetName())
		}
	}
	for _, config := range []map[string]*anypb.Any{vh.GetTypedPerFilterConfig(), r.GetTypedPerFilterConfig()} {
		for _, name := range slices.Sorted(maps.Keys(config)) {
			if !on[name] && !isKnown(name) {
				on[name] = true
				a.UnknownFilters = append(a.UnknownFilters, name)
			}
		}
	}
	if len(a.UnknownFilters) > 0 {
		a.step("filter", fmt.Sprintf("explain does not know %s, so what follows may be different", listOf(a.UnknownFilters)))
	}
}

// discovered reads the Envoy's configuration of a filter that is delivered on its own. It reports whether the Envoy
// has one.
func (s State) discovered(filter string, into proto.Message) (bool, error) {
	r := findResource(s.Extensions, filter)
	if r == nil {
		return false, nil
	}
	var packed corev3.TypedExtensionConfig
	if err := r.Body.UnmarshalTo(&packed); err != nil {
		return false, fmt.Errorf("decoding filter %q: %w", filter, err)
	}
	if err := packed.GetTypedConfig().UnmarshalTo(into); err != nil {
		return false, fmt.Errorf("decoding filter %q: %w", filter, err)
	}
	return true, nil
}

// listOf joins the names of filters for a sentence.
func listOf(names []string) string {
	if len(names) == 1 {
		return "the filter " + names[0]
	}
	return "the filters " + strings.Join(names, ", ")
}
