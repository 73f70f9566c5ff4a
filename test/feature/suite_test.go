package feature_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

func TestFeature(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	RunSpecs(t, "Features")
}

func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// serve runs a control plane with its data in dir.
func serve(dir string) *testkit.Gatehouse {
	GinkgoHelper()
	g, err := testkit.StartGatehouse(limit(), nil, "serve", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(g.Kill)
	Expect(g.WaitReady(limit())).To(Succeed())
	return g
}

// post makes a call that must succeed.
func post(g *testkit.Gatehouse, path string, fields ...string) {
	GinkgoHelper()
	a, err := g.API.Post(limit(), path, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(201), a.Body)
}

func remove(g *testkit.Gatehouse, path string) {
	GinkgoHelper()
	a, err := g.API.Delete(limit(), path)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(200), a.Body)
}

func upstream(g *testkit.Gatehouse, name string, more ...string) {
	GinkgoHelper()
	post(g, "/upstream", append([]string{"Upstream_name=" + name, "Upstream_ip=192.0.2.1", "Upstream_port=80"}, more...)...)
}

// shop creates proxy gw with service shop, whose route root goes to the upstreams.
func shop(g *testkit.Gatehouse, upstreams ...string) {
	GinkgoHelper()
	post(g, "/service", "Service_Name=shop", "fqdn=shop.test")
	post(g, "/service/shop/route", "Route_Name=root", "Route_prefix=/")
	for _, u := range upstreams {
		post(g, "/service/shop/route/root/upstream/"+u)
	}
	post(g, "/proxy", "Name=gw")
	post(g, "/proxy/gw/service/shop")
}

// client is an Envoy that records what it receives and acknowledges it, except what
// withhold names.
type client struct {
	*testkit.XDSClient

	mu       sync.Mutex
	heard    []string
	withhold string
	held     []*testkit.XDSResponse
}

// connect subscribes like an Envoy. withhold is the name of a cluster whose
// responses are not acknowledged before release is called.
func connect(g *testkit.Gatehouse, node, withhold string) *client {
	GinkgoHelper()
	c := &client{withhold: withhold}
	x, err := testkit.DialXDS(g.XDSAddr, node, c.hear)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(x.Close)
	c.XDSClient = x
	Expect(x.Subscribe(clusterType)).To(Succeed())
	Expect(x.Subscribe(listenerType)).To(Succeed())
	Expect(x.Subscribe(routeType, "gatehouse")).To(Succeed())
	return c
}

func (c *client) hear(r *testkit.XDSResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := describe(r.DeltaDiscoveryResponse)
	c.heard = append(c.heard, text)
	if c.withhold != "" && strings.HasPrefix(text, "clusters") && strings.Contains(text, "+"+c.withhold) {
		c.held = append(c.held, r)
		return
	}
	_ = r.Ack() // an error ends the stream, and the next wait shows it
}

// release acknowledges what was withheld.
func (c *client) release() {
	GinkgoHelper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withhold = ""
	for _, r := range c.held {
		Expect(r.Ack()).To(Succeed())
	}
}

// said returns what was received since the last call of forget.
func (c *client) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.heard...)
}

func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = nil
}

// describe describes a response: "clusters +blue -green", or "routes
// shop.test[/=blue]".
func describe(r *discoveryv3.DeltaDiscoveryResponse) string {
	text := map[string]string{clusterType: "clusters", listenerType: "listeners", routeType: "routes"}[r.GetTypeUrl()]
	for _, res := range r.GetResources() {
		if r.GetTypeUrl() != routeType {
			text += " +" + res.GetName()
			continue
		}
		var rc routev3.RouteConfiguration
		if err := res.GetResource().UnmarshalTo(&rc); err != nil {
			return err.Error()
		}
		var hosts []string
		for _, vh := range rc.GetVirtualHosts() {
			var routes []string
			for _, route := range vh.GetRoutes() {
				to := route.GetRoute().GetCluster()
				if d := route.GetDirectResponse(); d != nil {
					to = fmt.Sprint(d.GetStatus())
				}
				routes = append(routes, route.GetMatch().GetPrefix()+"="+to)
			}
			hosts = append(hosts, strings.Join(vh.GetDomains(), ",")+"["+strings.Join(routes, " ")+"]")
		}
		sort.Strings(hosts)
		text += " " + strings.Join(hosts, " ")
	}
	for _, name := range r.GetRemovedResources() {
		text += " -" + name
	}
	return strings.TrimRight(text, " ")
}
