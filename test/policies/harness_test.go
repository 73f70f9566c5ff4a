package policies_test

import (
	"cmp"
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	onShop  = "/service/shop/filter/f"
	onMoved = "/service/moved/filter/f"
	onRoute = "/service/shop/route/root/filter/f"
	onProxy = "/proxy/gw/filter/f"
)

func off(r request) string     { return r.off }
func on(r request) string      { return r.on }
func changed(r request) string { return r.changed }
func both(r request) string    { return r.both }

// there returns the result of a request with a filter on its route, and that of the others.
func there(with, otherwise func(request) string) func(request) string {
	return func(r request) string {
		if r.onRoute() {
			return with(r)
		}
		return otherwise(r)
	}
}

// elsewhere returns the result of a request with a filter on all but its route.
func elsewhere(r request) string {
	return cmp.Or(r.exempt, there(off, on)(r))
}

// onRoute tries a filter on a route, whose configuration is the changed one.
func (w *world) onRoute(p policy) {
	GinkgoHelper()
	By("only on a route")
	w.attach(onRoute)
	w.each(p, there(changed, off))
	w.configure(p.config)
	w.each(p, there(on, off))

	By("on a service, whose route is exempt from it, with another one on the route or not")
	w.detach(onRoute)
	w.exempt(`"service":["f"]`)
	w.attach(onShop, onMoved)
	w.each(p, elsewhere)
	w.attach("/service/shop/route/root/filter/g")
	w.each(p, there(func(r request) string { return cmp.Or(r.exemptChanged, r.changed) }, on))
	w.detach(onShop, onMoved, "/service/shop/route/root/filter/g")
	w.exempt("")

	By("with another one on the route")
	w.attach(onShop, onMoved, "/service/shop/route/root/filter/g")
	w.each(p, both)
	w.detach(onShop, onMoved, "/service/shop/route/root/filter/g")
	w.each(p, off)
}

// onProxy tries a filter on the proxy: it is as on each of its services.
func (w *world) onProxy(p policy) {
	GinkgoHelper()
	By("on the proxy")
	w.attach(onProxy)
	w.each(p, on)
	w.configure(p.changed)
	w.each(p, changed)
	w.configure(p.config)
	if p.onRoutes() {
		By("on the proxy, from which the route is exempt; not by the exemption from a filter of the service")
		w.exempt(`"proxy":["f"]`)
		w.each(p, elsewhere)
		w.exempt(`"service":["f"]`)
		w.each(p, on)
		w.exempt("")

		By("on the proxy, with another one on the route")
		w.attach("/service/shop/route/root/filter/g")
		w.each(p, both)
		w.detach("/service/shop/route/root/filter/g")
	}
	w.detach(onProxy)
	w.each(p, off)
}

var _ = Describe("A filter of the type", func() {
	for _, p := range policies() {
		Describe(p.kind, func() {
			It("works on a service and on a route, is changed and removed, and touches no listener", func() {
				w := newWorld(p)
				before := w.listeners()
				Expect(before).To(ContainElement("listener_manager.listener_added: 1"))
				w.each(p, off)
				w.attach(onShop, onMoved)
				w.each(p, on)
				w.configure(p.changed)
				w.each(p, changed)
				w.detach(onShop, onMoved)
				w.each(p, off)

				if p.onRoutes() {
					w.onRoute(p)
				}
				if (&model.Filter{Type: p.kind}).FitsOn(model.KindProxy) {
					w.configure(p.config)
					w.onProxy(p)
				} else {
					a, err := w.api.Post(limit(), onProxy)
					Expect(err).NotTo(HaveOccurred())
					Expect(a.Status).To(Equal(http.StatusUnprocessableEntity))
					Expect(a.Body).To(ContainSubstring("cannot be attached to a proxy: it "))
				}
				Expect(w.listeners()).To(Equal(before))
			})

			It("is the reason of what it refuses, in the metrics of services", func() {
				w := newWorld(p)
				w.post("/globalconfig?wait=applied&timeout=30s", "globalconfig_name=m", "globalconfig_type=globalconfig_metrics", "config={}")
				Eventually(func() map[string]int {
					w.send(request{host: "nowhere.test"})
					return w.reasons()
				}).Should(HaveKey("no_route"))
				var open []bool // the requests that nothing refuses without the filter
				for _, r := range p.requests {
					open = append(open, w.send(r).status < http.StatusBadRequest)
				}
				before := w.reasons()
				w.attach(onShop, onMoved)
				want := map[string]bool{}
				for i, r := range p.requests {
					if w.send(r).status >= http.StatusBadRequest && open[i] {
						want[cmp.Or(r.reason, p.kind)] = true
					}
				}
				Eventually(func() map[string]bool {
					more := map[string]bool{}
					for reason, n := range w.reasons() {
						if n > 2*before[reason] { // more than without the filter
							more[reason] = true
						}
					}
					return more
				}).Should(Equal(want))
			})

			It("is refused with a wrong configuration, before anything is stored", func() {
				w := newWorld(p)
				Expect(p.refusals).NotTo(BeEmpty())
				for _, r := range p.refusals {
					a, err := w.api.Post(limit(), "/filter", "Filter_name=wrong", "Filter_type="+p.kind, "Filter_config="+r.config)
					Expect(err).NotTo(HaveOccurred())
					Expect(a.Status).To(Equal(http.StatusBadRequest), "%s: %s", r.config, a.Body)
					var problem struct {
						Errors []struct{ Field, Message string }
					}
					Expect(json.Unmarshal([]byte(a.Body), &problem)).To(Succeed())
					Expect(problem.Errors).To(ConsistOf(struct{ Field, Message string }{r.field, r.message}), r.config)
				}
				a, err := w.api.Get(limit(), "/filter/wrong")
				Expect(err).NotTo(HaveOccurred())
				Expect(a.Status).To(Equal(http.StatusNotFound))
			})

			It("is switched on and off under load, without a wrong answer and without a change of the listener", func() { switchUnderLoad(p) })

			if p.denies > 0 {
				It("never allows a request if a message for it is wrong", func() { breakMessages(p) })
			}
		})
	}
})
