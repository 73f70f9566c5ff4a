package endpoints_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// rate is the number of requests per second in these specs.
const rate = 500

// service returns a host with one route to an upstream, on the proxy.
func service(id int64, name, upstream string) []model.Object {
	s := &model.Service{ID: id, Name: name, FQDN: name + ".test", HTTPS: model.HTTPSBoth}
	return []model.Object{
		s, &model.Route{ID: id, Service: name, Name: "root", Prefix: "/"},
		&model.RouteUpstream{ID: id, Service: name, Route: "root", Upstream: upstream},
		&model.ProxyService{ID: id, Proxy: "gw", Service: name},
	}
}

func upstream(id int64, name string, change ...func(*model.Upstream)) *model.Upstream {
	u := model.NewUpstream()
	u.ID, u.Name, u.IP, u.Port = id, name, "127.0.0.1", 1
	for _, f := range change {
		f(u)
	}
	return u
}

func backend(name string) *testkit.Backend {
	GinkgoHelper()
	b := must(testkit.StartBackend(name, testkit.BackendOptions{}))
	DeferCleanup(b.Close)
	return b
}

func at(b *testkit.Backend) model.Endpoint { return model.Endpoint{Address: b.IP, Port: b.Port} }

func draining(b *testkit.Backend) model.Endpoint {
	e := at(b)
	e.Draining = true
	return e
}

func endpoints(upstream string, list ...model.Endpoint) map[model.Key]*model.Endpoints {
	return map[model.Key]*model.Endpoints{model.UpstreamKey(upstream): model.NewEndpoints(list...)}
}

// get returns the backend that answers, or the gateway's status.
func (g *gateway) get(host string) string {
	r := must(http.NewRequest(http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(g.port)+"/", nil)) //nolint:noctx // bounded by the spec
	r.Host = host
	res, err := (&http.Client{Timeout: testkit.Patience}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	if name := res.Header.Get(testkit.BackendHeader); name != "" {
		return name
	}
	return strconv.Itoa(res.StatusCode)
}

// traffic sends requests until stop, which checks that none failed.
func (g *gateway) traffic(host string) (stop func() testkit.Report) {
	t := testkit.StartTraffic(testkit.TrafficOptions{Addr: "127.0.0.1:" + strconv.Itoa(g.port), Host: host, Rate: rate})
	return func() testkit.Report {
		GinkgoHelper()
		r := t.Stop()
		AddReportEntry("traffic", r.String())
		Expect(r.Failures).To(BeEmpty(), r.String())
		return r
	}
}

// grown waits for some more requests to a backend.
func grown(b *testkit.Backend) {
	GinkgoHelper()
	before := b.Requests()
	Eventually(b.Requests).Should(BeNumerically(">", before+20))
}

var _ = Describe("The endpoints of a discovered upstream", func() {
	for _, checked := range []bool{false, true} {
		It(fmt.Sprintf("come and go under traffic without a failed request (health check: %v)", checked), func() {
			hc := func(u *model.Upstream) {
				if checked {
					u.HCPath, u.HCIntervalSeconds = testkit.HealthPath, 1
				}
			}
			old := backend("0")
			g := newGateway(endpoints("web", at(old)), append(service(1, "shop", "web"), upstream(1, "web", hc))...)
			Eventually(g.get).WithArguments("shop.test").Should(Equal("0"))
			before := g.ads.Snapshot("gw")
			stop := g.traffic("shop.test")
			for i := 1; i <= 6; i++ { // as a Deployment does: one more, then one fewer
				next := backend(strconv.Itoa(i))
				g.assign("web", at(old), at(next))
				grown(next)
				g.assign("web", draining(old), at(next))
				grown(next)
				g.assign("web", at(next))
				grown(next)
				old.Close()
				old = next
			}
			Expect(stop().Backends).To(HaveLen(7))
			after := g.ads.Snapshot("gw")
			Expect(after.Clusters).To(Equal(before.Clusters))
			Expect(after.Hosts).To(Equal(before.Hosts))
		})
	}

	It("get no new requests while they drain, and all of them if all drain", func() {
		a, b := backend("a"), backend("b")
		g := newGateway(endpoints("web", at(b)), append(service(1, "shop", "web"), upstream(1, "web"))...)
		stop := g.traffic("shop.test")
		grown(b)
		g.assign("web", at(a), at(b)) // soon after another change Envoy would collect changes, see translate
		grown(a)
		g.assign("web", at(a), draining(b))
		g.assigned("web")
		still := b.Requests()
		for range 5 {
			grown(a)
		}
		const onTheWay = 20 // when Envoy answered; without the change about 100 would follow
		Expect(b.Requests()).To(BeNumerically("<", still+onTheWay))
		b.Close() // no client notices
		grown(a)
		g.assign("web", draining(a))
		grown(a)
		stop()
	})

	It("may be none: requests get 503 until there is one again, and a condition says so", func() {
		a := backend("a")
		objects := append(service(1, "shop", "web"), upstream(1, "web"))
		g := newGateway(endpoints("web"), objects...)
		Expect(g.get("shop.test")).To(Equal("503"))
		condition := model.Condition{Key: model.UpstreamKey("web"), Code: model.NoEndpoints, Message: "no endpoint is ready: requests go to the other upstreams of its clusters, or are answered with 503"}
		Expect(g.status.Conditions()).To(ContainElement(condition))
		g.assign("web", at(a))
		Eventually(g.get).WithArguments("shop.test").Should(Equal("a"))
		Eventually(g.status.Conditions).Should(BeEmpty())
		g.assign("web")
		Eventually(g.get).WithArguments("shop.test").Should(Equal("503"))
		g.assign("web", at(a))
		Eventually(g.get).WithArguments("shop.test").Should(Equal("a"))
	})

	It("replace a DNS name and are replaced by it under traffic", func() {
		a, b := backend("a"), backend("b")
		byName := upstream(1, "web", func(u *model.Upstream) { u.IP, u.Port = "localhost", a.Port })
		g := newGateway(nil, append(service(1, "shop", "web"), byName)...)
		Eventually(g.get).WithArguments("shop.test").Should(Equal("a"))
		stop := g.traffic("shop.test")
		for range 5 {
			g.assign("web", at(b))
			grown(b)
			g.write(map[model.Key]*model.Endpoints{byName.Key(): nil})
			grown(a)
		}
		stop()
	})

	It("remain the endpoints of the cluster when its settings change under traffic", func() {
		a := backend("a")
		g := newGateway(endpoints("web", at(a)), append(service(1, "shop", "web"), upstream(1, "web"))...)
		stop := g.traffic("shop.test")
		for i := range 10 {
			g.write(nil, upstream(1, "web", func(u *model.Upstream) { u.ConnectTimeoutSeconds = 1 + i }))
			g.settle()
			grown(a)
		}
		stop()
	})

	It("work for 2,000 clusters, each of which can change", func() {
		const many = 2000
		a, b := backend("a"), backend("b")
		var objects []model.Object
		all := map[model.Key]*model.Endpoints{}
		for i := int64(1); i <= many; i++ {
			name := fmt.Sprintf("u%d", i)
			objects = append(objects, append(service(i, fmt.Sprintf("s%d", i), name), upstream(i, name))...)
			all[model.UpstreamKey(name)] = model.NewEndpoints(at(a))
		}
		g := newGateway(all, objects...)
		for _, i := range []int{1, 1000, 2000} {
			Expect(g.get(fmt.Sprintf("s%d.test", i))).To(Equal("a"))
		}
		before := g.ads.Snapshot("gw")
		for _, i := range []int{1, 1000, 2000} {
			g.assign(fmt.Sprintf("u%d", i), at(b))
			Eventually(g.get).WithArguments(fmt.Sprintf("s%d.test", i)).Should(Equal("b"))
		}
		Expect(g.get("s2.test")).To(Equal("a"))
		different := 0
		for i, r := range g.ads.Snapshot("gw").Endpoints {
			if r != before.Endpoints[i] {
				different++
				Expect(strings.HasPrefix(r.Name, "u")).To(BeTrue())
			}
		}
		Expect(different).To(Equal(3), "an assignment that is as it was is not made again")
	})
})
