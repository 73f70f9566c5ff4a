package translate

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// ownFilters are the filters that have no package in pkg/core/filter, which has their order and its reasons.
func ownFilters() []seam.Filter {
	return []seam.Filter{
		{Name: HostFilter, Listener: hostFilter, Replies: hostReplies, Manager: cleanRequests, Refuses: refusedHosts()},
		{
			Name: AnybodyFilter, Listener: anybodyFilter, Disabled: true, Host: anybodyOfHost, Route: anybodyOfRoute,
			Replies: certificateReplies, Refuses: map[string]string{seam.Denied(certificateRequired): "client_certificate"},
		},
		{Name: VerifiedFilter, Listener: verifiedFilter, Host: verifiedOfHost},
		{
			Name: RateLimitFilter, Listener: rateLimitFilters, Disabled: true, Route: rateLimitsOfRoute, Replies: rateLimitedReplies,
			Resources: rateLimitResources,
			Refuses:   map[string]string{"request_rate_limited": limited, "rate_limiter_error": limited},
		},
		{Name: ClaimLimitFilter, Listener: claimLimitFilters, Disabled: true, Route: claimLimitsOfRoute},
		{Name: HSTSFilter, Listener: hstsFilter, Disabled: true, Host: hstsOfHost},
		{Name: AltSvcFilter, Listener: altSvcFilter},
		{Name: routerFilter, Listener: router, Replies: routerReplies, Refuses: unanswered()},
	}
}

// rows are all filters in their order. Those without a name are not on the listener.
var rows = httpFilters() //nolint:gochecknoglobals // never written: a constant, which every route iterates

func httpFilters() []seam.Filter {
	list, own := filter.List(), ownFilters()
	for i, f := range list {
		if at := slices.IndexFunc(own, func(o seam.Filter) bool { return o.Name == f.Name }); at >= 0 {
			list[i] = own[at]
		}
	}
	return list
}

func router(l ir.Listener) []seam.Message {
	config := &routerv3.Router{}
	if l.Lean {
		config.DynamicStats, config.SuppressEnvoyHeaders = wrapperspb.Bool(false), true
	}
	return []seam.Message{{Name: routerFilter, Config: config}}
}

const routerFilter = "envoy.filters.http.router"

// HTTPFilters returns the names of the HTTP filters in their order. If a row has several filters, it is the part of
// their names before the slash.
func HTTPFilters() []string {
	var names []string
	for _, f := range rows {
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

// packFor packs a message for one of the filters of a row.
func packFor(f seam.Filter, c seam.Message) (*anypb.Any, error) {
	if c.Name != f.Name && !strings.HasPrefix(c.Name, f.Name+"/") {
		return nil, fmt.Errorf("filter %s is not called as its row %s", c.Name, f.Name)
	}
	packed, err := pack(c.Config)
	if err != nil {
		return nil, fmt.Errorf("configuring filter %s: %w", c.Name, err)
	}
	return packed, nil
}

// listenerFilters returns the listener's filters in their order.
func listenerFilters(l ir.Listener) ([]*hcmv3.HttpFilter, error) {
	var list []*hcmv3.HttpFilter
	for _, f := range rows {
		switch {
		case f.Name == "":
			continue
		case f.Listener == nil:
			return nil, fmt.Errorf("filter %s has no code", f.Name)
		}
		for _, c := range f.Listener(l) {
			one := &hcmv3.HttpFilter{Name: c.Name, Disabled: f.Disabled && !c.On}
			var config *anypb.Any
			if c.Config != nil {
				var err error
				if config, err = packFor(f, c); err != nil {
					return nil, err
				}
			}
			if c.Discovered != nil {
				one.ConfigType = discovery(c.Discovered, config)
			} else {
				one.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// discovery replaces a message of the type of m. The listener waits for the message, and uses otherwise if it does
// not arrive.
func discovery(m message, otherwise *anypb.Any) *hcmv3.HttpFilter_ConfigDiscovery {
	return &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
		ConfigSource: seam.ADS(), DefaultConfig: otherwise, TypeUrls: []string{"type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())},
	}}
}

// localReplies returns the changes of the filters' own responses.
func localReplies(l ir.Listener) (*hcmv3.LocalReplyConfig, error) {
	list, err := frequentReplies()
	if err != nil {
		return nil, err
	}
	for _, f := range rows {
		if f.Replies == nil {
			continue
		}
		mappers, err := f.Replies(l)
		if err != nil {
			return nil, fmt.Errorf("configuring the answers of filter %s: %w", f.Name, err)
		}
		list = append(list, mappers...)
	}
	own, err := ownAnswers()
	return &hcmv3.LocalReplyConfig{Mappers: negotiated(list, own, pageOf(l))}, err
}

// ListenerResources returns what the filters of a listener need in addition to it.
func ListenerResources(l ir.Listener) (seam.Resources, error) {
	all := seam.Resources{Secrets: append(chainSecrets(l), credentialSecrets(l)...)}
	for _, f := range rows {
		if f.Resources == nil {
			continue
		}
		r, err := f.Resources(l)
		if err != nil {
			return seam.Resources{}, err
		}
		all.Clusters = append(all.Clusters, r.Clusters...)
		all.Secrets = append(all.Secrets, r.Secrets...)
		all.Extensions = append(all.Extensions, r.Extensions...)
	}
	return all, nil
}

// CheckOverride refuses overrides of a host or route that Envoy would treat as "no filter": a name that no row has,
// and an empty message. An empty FilterConfig is allowed: it turns a filter on with the listener's configuration.
func CheckOverride(name string, m proto.Message) error {
	isRow := func(f seam.Filter) bool {
		return f.Name != "" && (name == f.Name || strings.HasPrefix(name, f.Name+"/"))
	}
	if !slices.ContainsFunc(rows, isRow) {
		return fmt.Errorf("configuring filter %s: no listener has a filter of that name", name)
	}
	if _, turnsOn := m.(*routev3.FilterConfig); !turnsOn && proto.Size(m) == 0 {
		return fmt.Errorf("configuring filter %s: an empty message would turn it off", name)
	}
	return nil
}

func hostFilters(h *ir.Host) (map[string]*anypb.Any, error) {
	return perFilter(h, func(f *seam.Filter) func(*ir.Host) ([]seam.Message, error) { return f.Host })
}

func routeFilters(r *ir.Route) (map[string]*anypb.Any, error) {
	return perFilter(r, func(f *seam.Filter) func(*ir.Route) ([]seam.Message, error) { return f.Route })
}

// perFilter returns the messages of a host or route by the name of their filter. Envoy ignores messages for a filter
// that the listener does not have.
func perFilter[T any](of T, hook func(*seam.Filter) func(T) ([]seam.Message, error)) (map[string]*anypb.Any, error) {
	var all map[string]*anypb.Any
	for i := range rows { // a row is large, and each route of a start passes all of them
		configs := hook(&rows[i])
		if configs == nil {
			continue
		}
		list, err := configs(of)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if err := CheckOverride(c.Name, c.Config); err != nil {
				return nil, err
			}
			config, err := packFor(rows[i], c)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = map[string]*anypb.Any{}
			}
			all[c.Name] = config
		}
	}
	return all, nil
}

// changeBy lets the filters change the message of a host or route, in their order.
func changeBy[T, M any](of T, out M, hook func(*seam.Filter) func(T, M) error) error {
	for i := range rows {
		if change := hook(&rows[i]); change != nil {
			if err := change(of, out); err != nil {
				return fmt.Errorf("configuring filter %s: %w", rows[i].Name, err)
			}
		}
	}
	return nil
}
