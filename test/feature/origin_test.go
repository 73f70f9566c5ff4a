package feature_test

import (
	"encoding/json"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// refusing connects as an Envoy that refuses the responses in which refuses finds
// something, and acknowledges the others.
func refusing(g *testkit.Gatehouse, node string, refuses func(*discoveryv3.DeltaDiscoveryResponse) bool) *testkit.XDSClient {
	GinkgoHelper()
	x, err := testkit.DialXDS(g.XDSAddr, node, func(r *testkit.XDSResponse) {
		if refuses(r.DeltaDiscoveryResponse) {
			_ = r.Nack("will not have it") // an error ends the stream
			return
		}
		_ = r.Ack()
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(x.Close)
	Expect(x.Subscribe(clusterType)).To(Succeed())
	Expect(x.Subscribe(listenerType)).To(Succeed())
	Expect(x.Subscribe(routeType, "gatehouse")).To(Succeed())
	return x
}

// ofType returns the resources of a type.
func ofType(typeURL string) func(*discoveryv3.DeltaDiscoveryResponse) bool {
	return func(r *discoveryv3.DeltaDiscoveryResponse) bool {
		return r.GetTypeUrl() == typeURL && len(r.GetResources()) > 0
	}
}

// get reads the one element of an answer into view.
func get(g *testkit.Gatehouse, path string, view any) {
	GinkgoHelper()
	a, err := g.API.Get(limit(), path)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(200), a.Body)
	var body struct{ Data map[string][]json.RawMessage }
	Expect(json.Unmarshal([]byte(a.Body), &body)).To(Succeed())
	for _, list := range body.Data {
		Expect(list).To(HaveLen(1), a.Body)
		Expect(json.Unmarshal(list[0], view)).To(Succeed())
	}
}

// refused lists what the only Envoy of a proxy refused: the resource's type and its
// objects.
func refused(g *testkit.Gatehouse, proxy string) (list []string) {
	GinkgoHelper()
	var view struct {
		Proxies []struct {
			Envoys []struct {
				Refused []struct {
					Type    string
					Objects []string
				}
			}
		}
	}
	get(g, "/proxy/"+proxy+"/status", &view)
	for _, e := range view.Proxies[0].Envoys {
		for _, r := range e.Refused {
			list = append(list, r.Type+" "+strings.Join(r.Objects, " "))
		}
	}
	return list
}

// holding returns the conditions of an object that are true.
func holding(g *testkit.Gatehouse, path string) (list []string) {
	GinkgoHelper()
	var view struct {
		Status struct {
			Conditions []struct {
				Code   string
				Status bool
			}
		}
	}
	get(g, path, &view)
	for _, c := range view.Status.Conditions {
		if c.Status {
			list = append(list, c.Code)
		}
	}
	return list
}

// endpoints returns those that explain lists for a request, by upstream.
func endpoints(g *testkit.Gatehouse, url string) map[string]string {
	GinkgoHelper()
	var view struct {
		Forward struct {
			Clusters []struct {
				Endpoints []struct{ Upstream, Address string }
			}
		}
	}
	get(g, "/proxy/gw/explain?url="+url, &view)
	named := map[string]string{}
	for _, c := range view.Forward.Clusters {
		for _, e := range c.Endpoints {
			named[e.Upstream] = e.Address
		}
	}
	return named
}

var _ = Describe("the origin of an Envoy resource", func() {
	// Together these names are longer than the name of a cluster may be, so their
	// cluster's name ends in a hash.
	long := func(first string) string { return first + strings.Repeat("-_.x", 20) }
	a, b, c := long("a"), long("b"), long("c")

	var g *testkit.Gatehouse
	BeforeEach(func() {
		g = serve(GinkgoT().TempDir())
		for i, name := range []string{a, b, c} {
			post(g, "/upstream", "Upstream_name="+name, "Upstream_ip=192.0.2."+string(rune('1'+i)), "Upstream_port=80")
		}
		shop(g, a, b, c)
	})

	It("is every upstream for a cluster, however long its name", func() {
		refusing(g, "gw", ofType(clusterType))
		Eventually(refused).WithArguments(g, "gw").Should(Equal([]string{"cluster /upstream/" + a + " /upstream/" + b + " /upstream/" + c}))
		for _, name := range []string{a, b, c} {
			Eventually(holding).WithArguments(g, "/upstream/"+name).Should(ContainElement("Rejected"), name)
		}
		Expect(holding(g, "/service/shop")).NotTo(ContainElement("Rejected"))
	})

	It("is the upstream for each endpoint, however long the name of the cluster", func() {
		client := connect(g, "gw", "")
		Eventually(client.said).Should(ContainElement(HavePrefix("routes shop.test")))
		Eventually(endpoints).WithArguments(g, "http://shop.test/").Should(Equal(map[string]string{a: "192.0.2.1", b: "192.0.2.2", c: "192.0.2.3"}))
	})

	It("is the upstream for each endpoint, even if another one is out of rotation", func() {
		upstream(g, "off.-_1", "Upstream_weight=0")
		upstream(g, "on.-_1")
		post(g, "/service/shop/route", "Route_Name=pair", "Route_prefix=/pair")
		post(g, "/service/shop/route/pair/upstream/off.-_1")
		post(g, "/service/shop/route/pair/upstream/on.-_1")
		client := connect(g, "gw", "")
		Eventually(client.said).Should(ContainElement(ContainSubstring("/pair=off.-_1+on.-_1")))
		Eventually(endpoints).WithArguments(g, "http://shop.test/pair").Should(Equal(map[string]string{"on.-_1": "192.0.2.1"}))
	})

	It("is the service for a host, even for one named like the route configuration", func() {
		post(g, "/service", "Service_Name=gatehouse", "fqdn=gatehouse.test")
		x := refusing(g, "gw", func(r *discoveryv3.DeltaDiscoveryResponse) bool {
			return strings.Contains(describe(r), "gatehouse.test[")
		})
		Eventually(func() int { return len(x.Resources(routeType)) }).Should(Equal(1))
		post(g, "/proxy/gw/service/gatehouse")
		Eventually(refused).WithArguments(g, "gw").Should(Equal([]string{"route /service/gatehouse"}))
		Eventually(holding).WithArguments(g, "/service/gatehouse").Should(ContainElement("Rejected"))
		Expect(holding(g, "/proxy/gw")).NotTo(ContainElement("Rejected"))
		Expect(holding(g, "/service/shop")).To(Equal([]string{"Accepted", "Programmed"}))
	})

	It("is the proxy for a listener", func() {
		refusing(g, "gw", ofType(listenerType))
		Eventually(refused).WithArguments(g, "gw").Should(Equal([]string{"listener /proxy/gw"}))
		Eventually(holding).WithArguments(g, "/proxy/gw").Should(ContainElement("Rejected"))
	})
})
