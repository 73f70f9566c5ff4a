package translate_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// crowd returns a World with n GatewayHosts, each with its own Service and EndpointSlice, and one filter for all.
func crowd(n int) *translate.World {
	w := translate.New(proxies("gatehouse"), nil)
	w.Upsert(parse(filter("limit", "route_filter_ratelimit", `{"descriptors":[{"remote_address":"x"}]}`))[0])
	host, service, slice := member()
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		h, svc, s := host.DeepCopy(), service.DeepCopy(), slice.DeepCopy()
		h.Name, h.Spec.VirtualHost.FQDN, h.Spec.Routes[0].Services[0].Name = name, name+".example.com", gatewayv1.ObjectName(name)
		svc.Name, s.Name = name, name
		s.Labels[discoveryv1.LabelServiceName] = name
		w.Upsert(h)
		w.Upsert(svc)
		w.Upsert(s)
	}
	w.Settle()
	w.Take()
	return w
}

// member returns the objects of one GatewayHost in a crowd.
func member() (*gatewayv1.GatewayHost, *corev1.Service, *discoveryv1.EndpointSlice) {
	limited := strings.Replace(webHost, "services:", "filters: [{name: limit}]\n    services:", 1)
	return parse(limited)[0].(*gatewayv1.GatewayHost), parse(webService)[0].(*corev1.Service), parse(webSlice)[0].(*discoveryv1.EndpointSlice)
}

var _ = Describe("The work for a change", func() {
	DescribeTable("is proportional to the change, however many objects there are:", func(change func(*gatewayv1.GatewayHost, *corev1.Service, *discoveryv1.EndpointSlice, int) metav1.Object) {
		allocations := func(n int) float64 {
			w, turn := crowd(n), 0
			host, service, slice := member()
			host.Name, host.Spec.VirtualHost.FQDN, host.Spec.Routes[0].Services[0].Name = "web-7", "web-7.example.com", "web-7"
			service.Name, slice.Name = "web-7", "web-7"
			slice.Labels[discoveryv1.LabelServiceName] = "web-7"
			return testing.AllocsPerRun(20, func() {
				turn++
				w.Upsert(change(host.DeepCopy(), service.DeepCopy(), slice.DeepCopy(), turn))
				w.Settle()
				if step := w.Take(); step.IsEmpty() {
					panic("nothing changed")
				}
			})
		}
		few, many := allocations(20), allocations(2000)
		Expect(many).To(BeNumerically("<=", few+5), "%v allocations with 20 hosts, %v with 2,000", few, many)
	},
		Entry("the endpoints of a Service", func(_ *gatewayv1.GatewayHost, _ *corev1.Service, slice *discoveryv1.EndpointSlice, turn int) metav1.Object {
			slice.Endpoints[0].Addresses[0] = fmt.Sprintf("10.1.0.%d", turn)
			return slice
		}),
		Entry("a GatewayHost", func(host *gatewayv1.GatewayHost, _ *corev1.Service, _ *discoveryv1.EndpointSlice, turn int) metav1.Object {
			host.Generation, host.Spec.Routes[0].Name = int64(turn), fmt.Sprintf("r%d", turn)
			return host
		}),
		Entry("a Service", func(_ *gatewayv1.GatewayHost, service *corev1.Service, _ *discoveryv1.EndpointSlice, turn int) metav1.Object {
			service.Spec.Ports[0].AppProtocol = new([]string{"http", "https"}[turn%2])
			return service
		}),
	)

	It("is done once for objects whose status alone changed", func() {
		c := newCluster(webHost, webService)
		c.step()
		c.apply(webHost + "\nstatus: {envoys: 3}")
		Expect(c.step().IsEmpty()).To(BeTrue())
	})
})

var _ = Describe("Thousands of objects", func() {
	It("do not harm valid objects if they are broken", func() {
		c := newCluster(webService, webSlice, webHost)
		good := served(c.step())
		for i := range 1000 {
			spec := []string{"  filters: [{name: none}]", `  routes: [{conditions: [{regex: "("}]}]`, "  routes: [{services: [{name: none, port: 80}]}]", "  virtualhost: {fqdn: a..b}"}[i%4]
			host := strings.Replace(hostOf(spec), "shop.example.com", fmt.Sprintf("h%d.example.com", i), 1)
			c.apply(strings.NewReplacer("name: web, namespace", fmt.Sprintf("name: broken-%d, namespace", i)).Replace(host))
		}
		step := c.step()
		Expect(step.Objects).To(HaveLen(1000))
		for ref, o := range step.Objects {
			Expect(o.Problems).To(HaveLen(1), ref.String())
		}
		all := newState()
		all.add(step)
		Expect(all.objects).NotTo(HaveKey(model.ServiceKey("shop.web")), "the good one is as it was")
		Expect(good).To(HaveLen(1))
	})

	It("with the same problem in one object are counted", func() {
		routes := "  routes:\n" + strings.Repeat("  - {services: [{name: none, port: 80}]}\n", 1000)
		list := problems(newCluster(hostOf(routes)).step(), "GatewayHost shop/web")
		Expect(list).To(HaveLen(21))
		Expect(list[20]).To(Equal(" Invalid: 980 more problems will be shown when these are solved"))
	})
})
