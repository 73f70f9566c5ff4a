package inspect

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Upstreams returns the health of upstreams in the Envoys of some proxies: of those
// with these names or, if names is nil, of those that fail.
type Upstreams func(ctx context.Context, proxies, names []string) []UpstreamHealth

// UpstreamHealth is what is known of one upstream in one cluster of a proxy.
type UpstreamHealth struct {
	Proxy string
	// Upstream is the name of the upstream.
	Upstream string
	Cluster  string
	Address  string
	Port     uint32
	// Envoys are the addresses of the Envoys that report failures.
	Envoys []string
	health.Condition
}

// upstreamStatus is a failing upstream in a status.
type upstreamStatus struct {
	Object  string       `json:"object,omitempty"`
	Proxy   string       `json:"proxy"`
	Cluster string       `json:"cluster"`
	Address string       `json:"address"`
	Health  health.State `json:"health"`
	Reason  string       `json:"health_reason,omitempty"`
	Message string       `json:"health_message"`
	Envoys  []string     `json:"envoys"`
}

const (
	// maxFailing bounds the failing upstreams of a status, maxFailingEnvoys the Envoys
	// that are named for each.
	maxFailing       = 100
	maxFailingEnvoys = 10
	// maxAsked is the number of upstreams from which all failing ones are read instead.
	maxAsked = 500
)

// failing lists the upstreams that fail in some proxies, and counts those beyond the
// bound.
func (in *Inspector) failing(ctx context.Context, proxies []proxyStatus) (list []upstreamStatus, more int) {
	list = []upstreamStatus{}
	if in.Upstreams == nil {
		return list, 0
	}
	var names []string
	for _, p := range proxies {
		if len(p.Envoys) > 0 {
			names = append(names, p.Proxy)
		}
	}
	for _, u := range in.Upstreams(ctx, names, nil) {
		if len(list) == maxFailing {
			more++
			continue
		}
		list = append(list, upstreamStatus{
			Object: model.UpstreamKey(u.Upstream).Path(), Proxy: u.Proxy, Cluster: u.Cluster, Address: u.address(),
			Health: u.State, Reason: u.Reason, Message: u.Message,
			Envoys: slices.Clip(append([]string{}, u.Envoys[:min(maxFailingEnvoys, len(u.Envoys))]...)),
		})
	}
	return list, more
}

func (u UpstreamHealth) address() string {
	return net.JoinHostPort(u.Address, strconv.FormatUint(uint64(u.Port), 10))
}

// AddHealth adds the health of upstreams to their statuses.
func (in *Inspector) AddHealth(ctx context.Context, blocks []*ObjectStatus) {
	if in.Upstreams == nil {
		return
	}
	var names, proxies []string
	for _, b := range blocks {
		if b.key.Kind == model.KindUpstream && len(b.proxies) > 0 {
			names, proxies = append(names, b.key.Name()), append(proxies, b.proxies...)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(proxies)
	of := map[string][]UpstreamHealth{}
	for _, u := range in.Upstreams(ctx, slices.Compact(proxies), names) {
		of[u.Upstream] = append(of[u.Upstream], u)
	}
	for _, b := range blocks {
		b.Conditions = append(b.Conditions, healthConditions(of[b.key.Name()])...)
	}
}

// healthConditions returns the conditions of an upstream, one for each proxy and
// condition there.
func healthConditions(list []UpstreamHealth) []ObjectCondition {
	var conditions []ObjectCondition
	for _, u := range list {
		code := model.NotChecked
		switch {
		case u.State.Bad():
			code = model.Failing
		case u.State == health.Healthy, u.State == health.Answering:
			code = model.Answering
		}
		c := ObjectCondition{Code: code, Status: true, Message: u.Message, Path: model.ProxyKey(u.Proxy).Path()}
		if !slices.Contains(conditions, c) {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// WarnFailing returns a warning for each of these upstreams that fails.
func (in *Inspector) WarnFailing(ctx context.Context, names []string) []string {
	if in.Upstreams == nil || len(names) == 0 {
		return nil
	}
	if len(names) > maxAsked {
		names = nil
	}
	var proxies []string
	if in.Status != nil {
		for _, e := range in.Status.Envoys() {
			proxies = append(proxies, e.Proxy)
		}
	}
	slices.Sort(proxies)
	var warnings []string
	for _, u := range in.Upstreams(ctx, slices.Compact(proxies), names) {
		if u.State.Bad() {
			warnings = append(warnings,
				fmt.Sprintf("upstream %q (%s) is %s in proxy %q: %s", u.Upstream, u.address(), u.State, u.Proxy, u.Message))
		}
	}
	return warnings
}

// UpstreamsOf returns the names of the upstreams that changes concern: the changed
// ones, and those of changed routes and services.
func UpstreamsOf(r store.Reader, changed []model.Key) ([]string, error) {
	names, services := map[string]bool{}, map[model.Key]bool{}
	for _, key := range changed {
		switch key.Kind {
		case model.KindUpstream:
			names[key.Name()] = true
		case model.KindService, model.KindRoute, model.KindRouteUpstream:
			services[key.Root()] = true
		case model.KindProxyService:
			services[key.Attached()] = true
		}
	}
	if len(services) > 0 {
		q := store.Query{Kind: model.KindRouteUpstream}
		if len(services) <= maxAsked {
			q.To = slices.Collect(maps.Keys(services))
		}
		links, err := r.List(q)
		if err != nil {
			return nil, err
		}
		for _, l := range links {
			if services[l.Key().Root()] {
				names[usedByLink(l).Name()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
