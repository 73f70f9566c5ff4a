package explain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// perHeader returns a service that has a route with its own upstream for each value of
// some headers that identify the client.
func perHeader(g *generator, addresses []string) []model.Object {
	shop := model.NewService()
	shop.Name, shop.FQDN = "shop", "*"
	objects := []model.Object{shop, &model.ProxyService{Proxy: proxyName, Service: "shop"}}
	add := func(name string, headers ...model.ValueMatch) {
		r := &model.Route{Service: "shop", Name: name, Prefix: "/"}
		r.Config.Headers = headers
		g.upstream++
		u := model.NewUpstream()
		u.Name, u.Port, u.IP = fmt.Sprintf("u%d", g.upstream), g.backend, fmt.Sprintf("127.0.1.%d", g.upstream)
		objects = append(objects, r, u, &model.RouteUpstream{Service: "shop", Route: name, Upstream: u.Name})
	}
	exact := func(name, value string) model.ValueMatch { return model.ValueMatch{Name: name, Exact: &value} }
	for i, address := range addresses {
		for _, proto := range []string{"http", "https", "HTTPS", "ftp"} {
			for _, scheme := range []string{"http", "https", "HTTPS"} {
				add(fmt.Sprintf("r%d-%s-%s", i, proto, scheme),
					exact("x-envoy-external-address", address), exact("x-forwarded-proto", proto), exact(":scheme", scheme))
			}
		}
		add(fmt.Sprintf("r%d-any-http", i), exact("x-envoy-external-address", address), exact(":scheme", "http"))
		add(fmt.Sprintf("r%d-any", i), exact("x-envoy-external-address", address))
	}
	add("rest")
	return objects
}

var _ = Describe("A client behind proxies", func() {
	It("is the same for explain as for Envoy", func(ctx SpecContext) {
		l := newLab(ctx)
		c := &client{addr: fmt.Sprintf("127.0.0.1:%d", l.port)}
		DeferCleanup(c.close)
		addresses := []string{"127.0.0.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "::ffff:192.0.2.3", "::1", "10.0.0.1", "0.0.0.0"}
		odd := []string{
			"", " ", "unknown", "192.0.2.1:80", "[2001:db8::1]", "[2001:db8::1]:80", "2001:DB8:0::1", "192.0.2.01", "192.0.2", "3221225985", "192.0.2.1 192.0.2.2",
			"192.0.2.256", `"192.0.2.1"`, "192.0.2.1;", "_hidden", "2001:db8::1%1", "é", "0xc0.0.2.1", "::FFFF:192.0.2.3", "/tmp/socket",
		}
		told := map[string]int{}
		for hops := range 4 {
			g := &generator{rng: rand.New(rand.NewPCG(uint64(hops), 31)), backend: l.backend} //nolint:gosec // a few
			l.hops = hops
			have := stateOf(l.publish(perHeader(g, addresses)))
			l.live()
			c.close() // a connection keeps the listener that it started with
			for range 500 {
				r := explain.Request{Method: "GET", Target: "/", Headers: []explain.Header{{Name: "Host", Value: "shop.test"}}}
				for !g.chance(3) {
					var list []string
					for range 1 + g.rng.IntN(4) {
						entry := pick(g, addresses...)
						if g.chance(3) {
							entry = pick(g, odd...)
						}
						list = append(list, entry)
					}
					r.Headers = append(r.Headers, explain.Header{Name: "X-Forwarded-For", Value: strings.Join(list, pick(g, ",", ", ", " ,\t"))})
				}
				for g.chance(2) {
					r.Headers = append(r.Headers, explain.Header{
						Name: "X-Forwarded-Proto", Value: pick(g, "http", "https", "HTTPS", "ftp", "", "https,http"),
					})
				}
				a, err := explain.Explain(have, r)
				Expect(err).NotTo(HaveOccurred())
				got, err := c.send(r)
				Expect(err).NotTo(HaveOccurred())
				told[a.Route]++
				Expect(disagreement(a, r.Method, got)).To(BeEmpty(), "%d hops, %q: %s", hops, bytesOf(r), a.Steps)
			}
		}
		AddReportEntry("routes", fmt.Sprint(told))
		Expect(len(told)).To(BeNumerically(">", 20))
	})
})
