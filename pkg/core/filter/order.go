// Package filter is the list of all HTTP filters, in the order in which requests pass them.
package filter

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/accesslog"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/addresslist"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/affinity"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/bodylimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/canary"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/compress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/cors"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/csrf"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/directresponse"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/errorpage"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/extauthz"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/extproc"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/fault"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/grpc"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/headers"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/hostrewrite"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/ipaccess"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/lua"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/maintenance"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/mirror"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/redirect"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/requestid"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/tracing"
)

// List returns the filters. It is the only place that sets their order: requests pass them from first to last,
// responses from last to first. A row with only a name has no package here: pkg/xds/translate and pkg/diagnostics/explain have what
// it does.
func List() []seam.Filter {
	return slices.Concat([]seam.Filter{
		// These decide what a route does, before any other filter looks at it. They have no filter on the listener.
		directresponse.Filter(),
		redirect.Filter(),
		hostrewrite.Filter(),
		// Spans have nothing to do with the order: the connection manager begins and ends them.
		tracing.Filter(),
		// What others refuse is in the logs of the service too. This looks at nothing of the request.
		accesslog.Filter(),
		// Pages replace what all other filters answer: responses pass this last. It takes note of the client before any
		// filter answers, and refuses nothing.
		errorpage.Filter(),
		// The host is checked first: no other filter sees a request without one clear host.
		{Name: "envoy.filters.http.rbac/host"},
		// These two enforce client certificates before later filters look at the request.
		{Name: "envoy.filters.http.rbac/anybody"},
		{Name: "envoy.filters.http.rbac/verified"},
		// Everything after this, logs included, sees the chosen request ID.
		requestid.Filter(),
		// CORS answers preflights before any credential is required. Since it is early, refusals of later filters have
		// its headers too.
		cors.Filter(),
		// A response is compressed after all filters that may change its body.
		compress.Filter(),
		// The cheapest refusal of all, with what it compares; the lists are for later filters too. The filter has its own name, since a route's message replaces the host's.
		addresslist.Filter(),
		ipaccess.Lookup(),
		ipaccess.Filter(),
		// Maintenance comes after the address check and before logins: a closed host needs no login.
		maintenance.Filter(),
		// Rate limits come before everything that costs more than a lookup, so that a flood does not reach it.
		{Name: "envoy.filters.http.ratelimit"},
		// Pages of other sites are refused before anything asks who the client is.
		csrf.Filter(),
		// The first two remove headers that only later filters may set.
		credential.Headers(),
		extauthz.Spoofed(),
	}, credential.Filters(), []seam.Filter{
		// Rate limits by claim come after all filters that identify the client.
		{Name: "envoy.filters.http.ratelimit_claims"},
		// The buffer counts what was decompressed. Both come before the filters that hold a body for a server: after
		// those, the body arrives in one piece, which Envoy does not count.
		bodylimit.Decompressor(),
		bodylimit.Filter(),
		// The most expensive filters: they call other servers, which may need everything found before.
		extauthz.Filter(),
		extproc.Filter(),
		// Faults come after all access checks: strangers do not see experiments.
		fault.Filter(),
		// Scripts are the operator's own code, for requests that are allowed.
		lua.Filter(),
		// Changes of headers come after all filters that may answer, so they check what the client sent. Responses pass
		// them before those filters.
		headers.Filter(),
		// Responses pass HSTS before the changes of headers, so the user's own changes win.
		{Name: "envoy.filters.http.header_mutation/hsts"},
		// A backend does not know the port of HTTP/3, but an operator may: the changes of headers win here too.
		{Name: "envoy.filters.http.header_mutation/alt_svc"},
		// These filters change where and in which form a request is forwarded.
		affinity.Filter(),
		// gRPC-Web comes before JSON, so that what is already gRPC is not taken for JSON.
		grpc.Web(),
		grpc.JSON(),
		// These set what the router does with a request that it forwards. They have no filter on the listener. The routes
		// of a canary are there before other filters complete the route.
		mirror.Filter(),
		canary.Filter(),
		// The router is always last.
		{Name: "envoy.filters.http.router"},
	})
}

// Configs returns the rows with the configurations of a type.
func Configs() []seam.Filter {
	var list []seam.Filter
	for _, f := range List() {
		if f.Config != nil {
			list = append(list, f)
		}
	}
	return list
}
