package app

import (
	"context"
	"reflect"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/upstreams"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// explainer explains from what the connected Envoys have, or from what they should have
// while none is connected.
func explainer(ads *server.Server, known *knownLimits, health *upstreams.Health, own ownEnvoy) inspect.Explain {
	return func(ctx context.Context, proxy string, r explain.Request) ([]inspect.Explained, error) {
		type group struct {
			state        explain.State
			certificates []*snapshot.Certificate
			envoys       []string
		}
		var groups []group
		for _, have := range ads.Have(proxy) {
			if have.Hosts == nil && len(have.Refused) == 0 || have.Snapshot == nil {
				continue
			}
			refused := refusedListeners(have)
			at := slices.IndexFunc(groups, func(g group) bool {
				return slices.Equal(g.state.Hosts, have.Hosts) && slices.Equal(g.state.Clusters, have.Snapshot.Clusters) &&
					slices.Equal(g.state.Endpoints, have.Snapshot.Endpoints) &&
					slices.Equal(g.state.Listeners, have.Snapshot.Listeners) &&
					slices.Equal(g.state.Extensions, have.Snapshot.Extensions) && slices.Equal(g.state.Refused, refused) &&
					slices.Equal(g.state.Secrets, have.Snapshot.Secrets) && slices.Equal(g.certificates, have.Snapshot.Certificates)
			})
			if at < 0 {
				at = len(groups)
				groups = append(groups, group{state: stateOf(have.Snapshot, have.Hosts), certificates: have.Snapshot.Certificates})
				groups[at].state.Refused = refused
				if own.upstreams != nil && have.Parent == own.upstreams.Parent {
					groups[at].state.Where = own.where // of which no other Envoy has a copy
				}
			}
			groups[at].envoys = append(groups[at].envoys, have.Envoy)
		}
		if len(groups) == 0 {
			groups = []group{{}}
			if wanted := ads.Snapshot(proxy); wanted != nil {
				groups[0].state = stateOf(wanted, wanted.Hosts)
			}
		}
		var list []inspect.Explained
		for _, g := range groups {
			g.state.Limits = known.find
			a, err := explain.Explain(g.state, r)
			if err != nil {
				return nil, err
			}
			// Listeners that name different copies of databases may do the same.
			if at := slices.IndexFunc(list, func(e inspect.Explained) bool { return reflect.DeepEqual(e.Answer, a) }); at >= 0 {
				list[at].Envoys = append(list[at].Envoys, g.envoys...)
				continue
			}
			list = append(list, inspect.Explained{Envoys: g.envoys, Answer: a})
		}
		for i := range list {
			health.AddTo(ctx, proxy, list[i].Envoys, &list[i].Answer)
		}
		return list, nil
	}
}

// drafter explains from what Envoys should have after changes that are not stored. It asks no Envoy for the health of
// upstreams: a transaction waits for the answer.
func drafter(loop *pipeline.Loop, own ownEnvoy) func(context.Context) (inspect.Draft, error) {
	return func(ctx context.Context) (inspect.Draft, error) {
		draft, err := loop.Draft(ctx)
		if err != nil {
			return nil, err
		}
		return func(proxy string, changes []model.Entry, r explain.Request) (inspect.Explained, error) {
			wanted, domains, err := draft.Snapshot(proxy, changes)
			if err != nil {
				return inspect.Explained{}, err
			}
			var state explain.State
			if wanted != nil {
				state = stateOf(wanted, wanted.Hosts)
			}
			known := &knownLimits{}
			known.domains.Store(&domains)
			state.Limits = known.find
			if own.upstreams != nil {
				state.Where = own.where
			}
			a, err := explain.Explain(state, r)
			return inspect.Explained{Draft: true, Answer: a}, err
		}, nil
	}
}

func refusedListeners(have server.Have) []explain.RefusedListener {
	var list []explain.RefusedListener
	for _, r := range have.Refused {
		list = append(list, explain.RefusedListener(r))
	}
	return list
}

func stateOf(s *snapshot.Snapshot, hosts []*snapshot.Host) explain.State {
	return explain.State{
		Listeners: s.Listeners, Clusters: s.Clusters, Endpoints: s.Endpoints, Secrets: s.Secrets, Extensions: s.Extensions,
		Certificates: s.Candidates, Routes: s.RouteConfiguration(), Hosts: hosts,
	}
}
