package explain_test

import (
	"encoding/base64"
	"maps"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/bodylimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/cors"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/csrf"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/fault"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/ipaccess"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/maintenance"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// test/policies shows that Envoy has the same order.
var _ = Describe("Of several filters that refuse a request", func() {
	const empty = "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="
	// refusals are the codes and the types of the filters that answer one after the other, as fixes take away what they refuse.
	refusals := func(method string, h ir.Host, r ir.Route, lines []string, fixes []func(*ir.Host, *ir.Route, *[]string)) (list []string) {
		GinkgoHelper()
		for i := range len(fixes) + 1 {
			if i > 0 {
				fixes[i-1](&h, &r, &lines)
			}
			h.Name, h.Domain, h.Identity = "shop", "*", []string{"x-client"}
			r.Name, r.Match = "root", ir.Match{Path: "/", PathKind: "prefix"}
			if r.Forward == nil {
				r.Respond = &ir.Respond{Status: 200}
			}
			h.Routes = []*ir.Route{&r}
			have := state(must(snapshot.NewHost(must(translate.VirtualHost(&h)), []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(&r))))}, snapshot.ObjectRef{})))
			resources := must(translate.ListenerResources(ir.Listener{Keys: []ir.APIKey{{Client: "a/x", Hash: empty}}, AnyKeys: []ir.APIKey{{Client: "a/x", Hash: empty}}}))
			for _, e := range resources.Extensions {
				have.Extensions = append(have.Extensions, must(snapshot.NewExtension(e)))
			}
			request, errs := explain.NewRequest(method, "http://h/", lines)
			Expect(errs).To(BeEmpty())
			request.Client = netip.MustParseAddr("192.0.2.7")
			a := must(explain.Explain(have, request))
			list = append(list, a.Code+" "+a.FilterType)
		}
		return list
	}
	type fix = func(*ir.Host, *ir.Route, *[]string)
	line := func(text string) fix {
		return func(_ *ir.Host, _ *ir.Route, lines *[]string) { *lines = append(*lines, text) }
	}
	key := "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte("a/x:"))
	denied := &ipaccess.Access{Deny: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	nobody := []*credential.Access{{Allow: []credential.AccessRule{{Methods: []string{"PUT"}}}}}
	without := func(f ir.Filters, name string) ir.Filters {
		f = maps.Clone(f)
		delete(f, name)
		return f
	}
	noAddress := func(h *ir.Host, _ *ir.Route, _ *[]string) { h.Filters = without(h.Filters, "ipAccess") }
	noRules := func(h *ir.Host, _ *ir.Route, _ *[]string) { h.Filters = h.Filters.With("access", nil) }

	It("the first in Envoy's order answers", func() {
		token := &credential.Tokens{
			Check: &credential.TokenCheck{Name: "filter/api/0", Header: "x-token"}, Require: []credential.ClaimMatch{{Claim: []string{"role"}, Values: []string{"admin"}}},
		}
		host := ir.Host{Filters: ir.Filters{
			"ipAccess": denied, "maintenance": &maintenance.Response{Status: 410, Body: "gone\n"}, "csrf": &csrf.Policy{},
			"fault":  &fault.Fault{Abort: 503, Millionths: 1_000_000},
			"tokens": token, "keys": &credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a"}, "access": nobody,
		}}
		Expect(refusals("POST", host, ir.Route{Filters: ir.Filters{"bodyLimit": &bodylimit.Limit{Bytes: 10}}}, []string{"Content-Length: 11"}, []fix{
			noAddress,
			func(h *ir.Host, _ *ir.Route, _ *[]string) { h.Filters = without(h.Filters, "maintenance") },
			line("Origin: http://h"),
			line("X-Token: " + tokenSaying(map[string]any{"role": "user"})),
			line(key),
			func(h *ir.Host, _ *ir.Route, _ *[]string) {
				h.Filters = h.Filters.With("tokens", &credential.Tokens{Check: token.Check})
			},
			noRules,
			func(_ *ir.Host, r *ir.Route, _ *[]string) { r.Filters = nil },
			func(h *ir.Host, _ *ir.Route, _ *[]string) { h.Filters = without(h.Filters, "fault") },
		})).To(Equal([]string{
			"address_refused vh_filter_ipaccess",
			"maintenance vh_filter_maintenance",
			"cross_site_refused http_filter_csrf",
			"token_refused http_filter_jwt",
			"key_required http_filter_apikey",
			"claim_refused http_filter_jwt",
			"access_refused vh_filter_rbac",
			"body_too_large route_filter_bodylimit",
			"fault route_filter_fault",
			"direct_response route_filter_directresponse",
		}))
	})

	It("API keys come before passwords, and both before rules", func() {
		host := ir.Host{Filters: ir.Filters{"keys": &credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a"}, "basicAuth": &credential.BasicAuth{Users: []credential.User{{Name: "ann", Hash: empty}}}, "access": nobody}}
		Expect(refusals("GET", host, ir.Route{}, nil, []fix{
			line(key), line("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"))), noRules,
		})).To(Equal([]string{
			"key_required http_filter_apikey",
			"password_required http_filter_basicauth",
			"access_refused vh_filter_rbac",
			"direct_response route_filter_directresponse",
		}))
	})

	It("one of several credentials comes between addresses and rules", func() {
		host := ir.Host{Filters: ir.Filters{"ipAccess": denied, "access": nobody, "anyOf": &credential.AnyOf{Keys: &credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a"}, Tokens: &credential.Tokens{Check: &credential.TokenCheck{Name: "filter/either/0", Header: "x-token", Optional: true}}}}}
		noToken := func(_ *ir.Host, _ *ir.Route, lines *[]string) { *lines = nil }
		Expect(refusals("GET", host, ir.Route{}, []string{"X-Token: a"}, []fix{noAddress, noToken, line(key), noRules})).To(Equal([]string{
			"address_refused vh_filter_ipaccess",
			"token_refused http_filter_anyof",
			"no_credential http_filter_anyof",
			"access_refused vh_filter_rbac",
			"direct_response route_filter_directresponse",
		}))
	})

	It("a preflight is answered before anything else is asked", func() {
		host := ir.Host{Filters: ir.Filters{"ipAccess": denied, "access": nobody}}
		route := ir.Route{
			Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "blue"}}}},
			Filters: ir.Filters{"cors": &cors.Policy{Origins: []string{"https://a.test"}}},
		}
		lines := []string{"Access-Control-Request-Method: PUT", "Origin: https://a.test"}
		Expect(refusals("OPTIONS", host, route, lines, []fix{
			func(_ *ir.Host, r *ir.Route, _ *[]string) { r.Filters = nil }, noAddress, noRules,
		})).To(Equal([]string{
			"preflight vh_filter_cors",
			"address_refused vh_filter_ipaccess",
			"access_refused vh_filter_rbac",
			"no_cluster ",
		}))
	})
})
