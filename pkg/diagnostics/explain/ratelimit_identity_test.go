package explain_test

import (
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("A rate limit by identity", func() {
	claim := ir.RateLimit{{Kind: ir.RateLimitClaim, Key: "claim", Name: "realm.user"}}
	client := ir.RateLimit{{Kind: ir.RateLimitAPIClient, Key: "api_client"}}
	tokens := &credential.Tokens{Check: &credential.TokenCheck{Name: "filter/api/1234", Issuer: "me", Header: "authorization", Prefix: "Bearer "}}
	keys := &credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a"}
	key := "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte("a/x:"))
	token := "Authorization: Bearer " + tokenSaying(map[string]any{"iss": "me", "realm": map[string]any{"user": "ann"}})

	// said returns the message about the filter on a host, with its descriptors. The Envoy knows the key
	// a/x.
	said := func(h *ir.Host, r *ir.Route, headers ...string) string {
		GinkgoHelper()
		r.Name, r.Match = "root", ir.Match{Path: "/", PathKind: "prefix"}
		r.Forward = &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "blue"}}}}
		h.Name, h.Domain, h.Routes = "shop", "*", []*ir.Route{r}
		have := state(must(snapshot.NewHost(must(translate.VirtualHost(h)), []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(r))))}, snapshot.ObjectRef{})))
		limited := limitingBy(ir.Listener{
			RateLimit: &ir.RateLimitService{Domain: "1/edge", Headers: true, Status: 429},
			Keys:      []ir.APIKey{{Client: "a/x", Hash: "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="}},
		})
		have.Listeners, have.Extensions = limited.Listeners, limited.Extensions
		a := ask(have, "http://h/", headers...)
		for _, f := range a.Filters {
			if f.Name == "envoy.filters.http.ratelimit_claims" {
				list := []string{f.Message}
				for _, d := range f.Descriptors {
					list = append(list, d.Message)
				}
				return strings.Join(list, "; ")
			}
		}
		return a.Code
	}
	const nothingVerifies = "limits nothing: it counts by claims, which neither a http_filter_jwt nor a login verifies there"

	DescribeTable("reports", func(h ir.Host, r ir.Route, want string, headers ...string) {
		Expect(said(&h, &r, headers...)).To(Equal(want))
	},
		Entry("the claim of a token", ir.Host{Filters: ir.Filters{"tokens": tokens}}, ir.Route{RateLimits: []ir.RateLimit{claim}}, "checks 1 of 1 descriptors in domain 1/edge; claim=ann", token),
		Entry("the claim of a token of the route", ir.Host{}, ir.Route{RateLimits: []ir.RateLimit{claim}, Filters: ir.Filters{"tokens": tokens}}, "checks 1 of 1 descriptors in domain 1/edge; claim=ann", token),
		Entry("that a token has no such claim", ir.Host{Filters: ir.Filters{"tokens": tokens}}, ir.Route{RateLimits: []ir.RateLimit{claim}},
			"checks 0 of 1 descriptors in domain 1/edge; is not sent: claim realm.user is not a string in the token", "Authorization: Bearer "+tokenSaying(map[string]any{"realm": map[string]any{"user": 7}})),
		Entry("that nothing verifies claims on a public route", ir.Host{Filters: ir.Filters{"keys": keys}}, ir.Route{RateLimits: []ir.RateLimit{claim}}, nothingVerifies, key, token),
		Entry("that nothing does on a public route", ir.Host{Filters: ir.Filters{"tokens": tokens}}, ir.Route{Public: true, RateLimits: []ir.RateLimit{claim}}, nothingVerifies, token),
		Entry("the client of a key", ir.Host{Filters: ir.Filters{"keys": keys}}, ir.Route{RateLimits: []ir.RateLimit{client}}, "checks 1 of 1 descriptors in domain 1/edge; api_client=a/x", key),
		Entry("the client of a key on a route", ir.Host{}, ir.Route{RateLimits: []ir.RateLimit{client}, Filters: ir.Filters{"keys": keys}}, "checks 1 of 1 descriptors in domain 1/edge; api_client=a/x", key),
		Entry("that no filter requires a key", ir.Host{Filters: ir.Filters{"tokens": tokens}}, ir.Route{RateLimits: []ir.RateLimit{client}},
			"limits nothing: it counts by the client of an API key, and no http_filter_apikey requires one there", token, key),
		Entry("which of two is sent", ir.Host{Filters: ir.Filters{"keys": keys}}, ir.Route{RateLimits: []ir.RateLimit{claim, client}},
			"checks 1 of 2 descriptors in domain 1/edge; is not sent: claim realm.user is not a string in the token; api_client=a/x", key, token),
		Entry("that a request without a key is not counted", ir.Host{Filters: ir.Filters{"keys": keys}}, ir.Route{RateLimits: []ir.RateLimit{client}},
			"checks 0 of 1 descriptors in domain 1/edge; is not sent: the request has no API key that a filter requires"),
	)

	It("is also explained without a rate-limit engine", func() {
		r := &ir.Route{Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "blue"}}}}, DomainLimits: map[string][]ir.RateLimit{"api": {client}}}
		a := ask(state(host("shop", []string{"*"}, must(translate.Route(r)))), "http://h/")
		last := a.Filters[len(a.Filters)-1]
		Expect(last).To(Equal(explain.Filter{
			Name: "envoy.filters.http.ratelimit_claims/api", Message: "limits nothing: there is no rate-limit engine",
			Descriptors: []explain.Descriptor{{Domain: "api", Unknown: true, Message: "is not sent: the request has no API key that a filter requires", Entries: []explain.Entry{}}},
		}))
	})
})
