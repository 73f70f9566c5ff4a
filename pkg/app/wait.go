package app

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/build"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/providers"
	"github.com/gatehouse-gateway/gatehouse/pkg/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// firstAnswer bounds how long a wait for a login waits for its identity provider.
const firstAnswer = 3 * time.Second

// waitApplied serves ?wait=applied: the build loop knows which proxies a change
// reaches, the xDS server when their Envoys have it, and with limited also when
// the rate-limit engines do.
func waitApplied(loop *build.Loop, logins *providers.Watch, xds *server.Server, limited bool) rest.Wait {
	return func(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
		reach, err := loop.Reach(ctx, changed)
		asked := false
		if err == nil {
			if asked = settle(ctx, logins, changed); asked {
				reach, err = loop.Reach(ctx, changed) // with what the provider says
			}
		}
		if err != nil { // only when ctx ended
			return []status.Lag{{Reason: status.Slow, Message: "the configuration is not published yet"}}
		}
		goals := make(map[string]plan.Goal, len(reach))
		for proxy, r := range reach {
			goals[proxy] = plan.Goal{Revision: revision, Hosts: r.Services, Listeners: r.Listeners, All: r.All, Newest: asked}
		}
		lags := xds.Wait(ctx, goals)
		// A filter may state a limit itself.
		rates := func(k model.Key) bool { return k.Kind == model.KindGlobalConfig || k.Kind == model.KindFilter }
		if limited && slices.ContainsFunc(changed, rates) {
			lags = append(lags, xds.WaitRateLimits(ctx, revision)...)
		}
		return lags
	}
}

// settle waits for the first answer of the identity providers that a change is about. It
// reports whether it is about any.
func settle(ctx context.Context, logins *providers.Watch, changed []model.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	return logins.Settle(ctx, changed)
}
