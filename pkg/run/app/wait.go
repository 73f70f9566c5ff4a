package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// firstAnswer bounds how long the wait for a login waits for its identity provider.
const firstAnswer = 3 * time.Second

// waiter waits for the Envoys of this replica.
type waiter struct {
	loop     *pipeline.Loop
	logins   *providers.Watch
	acme     *acme.Watch
	xds      *server.Server
	registry *status.Registry
	// limited reports whether separate rate-limit engines count.
	limited bool
}

// waitApplied waits for a change: the build loop knows which proxies it reaches, and the
// xDS server knows when their Envoys and the rate-limit engines have it.
func (w waiter) waitApplied(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
	reach, err := w.loop.Reach(ctx, changed)
	asked := false
	if err == nil {
		if asked = settle(ctx, w.logins, changed); asked {
			reach, err = w.loop.Reach(ctx, changed) // including what the provider says
		}
	}
	if err != nil { // only when ctx ended
		return notPublished()
	}
	newest := asked || w.acme != nil && w.acme.Concerns(changed)
	goals := make(map[string]plan.Goal, len(reach))
	for proxy, r := range reach {
		goals[proxy] = plan.Goal{Revision: revision, Hosts: r.Services, Listeners: r.Listeners, All: r.All, Newest: newest}
	}
	lags := w.xds.Wait(ctx, goals)
	if w.limited && slices.ContainsFunc(changed, isRate) {
		lags = append(lags, w.xds.WaitRateLimits(ctx, revision)...)
	}
	return lags
}

func notPublished() []status.Lag {
	return []status.Lag{{Reason: status.Slow, Message: "the configuration is not published yet"}}
}

// isRate reports whether an object may hold limits: a filter may state one itself.
func isRate(k model.Key) bool { return k.Kind == model.KindGlobalConfig || k.Kind == model.KindFilter }

// waitAll waits until the connected Envoys have everything.
func (w waiter) waitAll(ctx context.Context, revision int64) []status.Lag {
	if _, err := w.loop.Reach(ctx, nil); err != nil { // everything stored is now published
		return notPublished()
	}
	goals := map[string]plan.Goal{}
	for _, e := range w.registry.Envoys() {
		goals[e.Proxy] = plan.Goal{Revision: revision, All: true}
	}
	lags := w.xds.Wait(ctx, goals)
	if w.limited {
		lags = append(lags, w.xds.WaitRateLimits(ctx, revision)...)
	}
	return lags
}

// answer waits on behalf of another replica.
func (w waiter) answer(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
	if len(changed) == 0 {
		return w.waitAll(ctx, revision)
	}
	return w.waitApplied(ctx, revision, changed)
}

// everywhere serves ?wait=applied: it waits for the Envoys of all replicas, if the write
// reaches any. Without a hub there is only this replica.
func (w waiter) everywhere(hub *replicas.Hub) rest.Wait {
	if hub == nil {
		return w.waitApplied
	}
	return func(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
		if len(changed) == 0 {
			return nil
		}
		var proxies []string
		if limits := w.limited && slices.ContainsFunc(changed, isRate); !limits && len(hub.Others()) > 0 {
			reach, err := w.loop.Reach(ctx, changed)
			if err == nil && len(reach) == 0 {
				return nil
			}
			proxies = slices.Collect(maps.Keys(reach))
		}
		return hub.Wait(ctx, revision, changed, proxies)
	}
}

// settle waits for the first answer of the identity providers that a change concerns. It
// reports whether the change concerns any.
func settle(ctx context.Context, logins *providers.Watch, changed []model.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	return logins.Settle(ctx, changed)
}
