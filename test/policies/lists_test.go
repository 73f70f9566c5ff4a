package policies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Shared lists", func() {
	// tried is a request with the status that it gets, and that explain predicts.
	type tried struct {
		request
		status int
	}
	each := func(w *world, requests ...tried) {
		GinkgoHelper()
		for _, r := range requests {
			Eventually(func() int { return w.send(r.request).status }).Should(Equal(r.status), r.what)
			status, _, _ := w.explained(r.request)
			Expect(status).To(Equal(r.status), "explain: "+r.what)
		}
	}
	list := func(w *world, name string, addresses ...string) {
		GinkgoHelper()
		config, err := json.Marshal(object{"addresses": append([]string{}, addresses...)})
		Expect(err).NotTo(HaveOccurred())
		a, err := w.api.Do(limit(), http.MethodPut, "/list/"+name+"?wait=applied", "application/json",
			fmt.Sprintf(`{"List_type":"addresses","List_config":%s}`, config))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(BeElementOf(200, 201), a.Body)
	}
	filter := func(w *world, name, kind, config string, places ...string) {
		GinkgoHelper()
		w.post("/filter", "Filter_name="+name, "Filter_type="+kind, "Filter_config="+config)
		for _, place := range places {
			w.attach(place + "/filter/" + name)
		}
	}

	It("of addresses reach every filter that names them, on the service, on the route and in rules, and touch no listener", func() {
		w := newWorld(ipAccess())
		before := w.listeners()
		list(w, "office", "127.0.0.2")
		list(w, "bad", "127.0.0.4")
		filter(w, "lists", "vh_filter_ipaccess", `{"allow":["127.0.0.3","127.0.0.4"],"allow_lists":["office"],"deny_lists":["bad"]}`, "/service/shop")
		filter(w, "moved", "vh_filter_ipaccess", `{"allow_lists":["office"]}`, "/service/moved")
		filter(w, "rules", "vh_filter_rbac", `{"allow":[{"methods":["GET"]},{"address_lists":["office"]}],"deny":[{"headers":[{"name":"x-deny"}],"addresses":["127.0.0.9"],"address_lists":["office"]}]}`, "/service/shop/route/empty")
		get := func(what, from string, status int) tried { return tried{request{what: what, from: from}, status} }
		empty := func(what, method, from string, status int, header ...string) tried {
			return tried{request{what: what, path: "/empty", method: method, from: from, header: header}, status}
		}
		moved := func(what, from string, status int) tried {
			return tried{request{what: what, host: "moved.test", from: from}, status}
		}
		each(w, get("in no list", "127.0.0.1", 403), get("in the list", "127.0.0.2", 200), get("in the filter", "127.0.0.3", 200), get("in the deny list", "127.0.0.4", 403),
			moved("in the list of another service", "127.0.0.2", 301), moved("not in it", "127.0.0.3", 403),
			empty("a rule for a method", "GET", "127.0.0.3", 503), empty("a rule for a list", "POST", "127.0.0.2", 503), empty("in no list of a rule", "POST", "127.0.0.3", 403),
			empty("a deny rule", "GET", "127.0.0.2", 403, "X-Deny: 1"), empty("no deny rule", "GET", "127.0.0.3", 503, "X-Deny: 1"), empty("the list of the service on the route", "GET", "127.0.0.4", 403))

		list(w, "office", "127.0.0.1", "127.0.0.3")
		each(w, get("now in the list", "127.0.0.1", 200), get("not in the list any more", "127.0.0.2", 403), get("still in the deny list", "127.0.0.4", 403),
			moved("now in the list of another service", "127.0.0.3", 301), moved("not in it any more", "127.0.0.2", 403),
			empty("a rule for the changed list", "POST", "127.0.0.1", 503), empty("a deny rule with the changed list", "GET", "127.0.0.3", 403, "X-Deny: 1"))

		list(w, "bad", "127.0.0.1")
		list(w, "office")
		each(w, get("denied", "127.0.0.1", 403), get("in the filter", "127.0.0.4", 200), get("in an empty list", "127.0.0.2", 403))
		Expect(w.listeners()).To(Equal(before))
		a, err := w.api.Delete(limit(), "/list/bad")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusConflict))
		Expect(a.Body).To(ContainSubstring(`"referenced_by":["/filter/lists"]`))
	})

	It("leave a service open for addresses while it is in maintenance", func() {
		w := newWorld(ipAccess())
		list(w, "staff", "127.0.0.2")
		filter(w, "closed", "vh_filter_maintenance", `{"except":["127.0.0.3"],"except_lists":["staff"]}`, "/service/shop")
		each(w, tried{request{what: "nobody", from: "127.0.0.1"}, 503}, tried{request{what: "in the list", from: "127.0.0.2"}, 200}, tried{request{what: "in the filter", from: "127.0.0.3"}, 200})
		list(w, "staff", "127.0.0.1")
		each(w, tried{request{what: "now in the list", from: "127.0.0.1"}, 200}, tried{request{what: "gone", from: "127.0.0.2"}, 503})
	})

	It("are named by explain when they refuse", func() {
		w := newWorld(ipAccess())
		list(w, "office", "127.0.0.2")
		list(w, "bad", "127.0.0.3")
		filter(w, "lists", "vh_filter_ipaccess", `{"allow_lists":["office"],"deny_lists":["bad"]}`, "/service/shop")
		for from, why := range map[string]string{"127.0.0.1": "it is not in the list office", "127.0.0.3": "it is in the list bad"} {
			a, err := w.api.Get(limit(), "/proxy/gw/explain?url=http://shop.test/shop&address="+from)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Body).To(ContainSubstring("vh_filter_ipaccess lists does not allow " + from + ": " + why))
		}
		w.attach("/proxy/gw/filter/f")
		a, err := w.api.Get(limit(), "/proxy/gw/explain?url=http://shop.test/shop&address=127.0.0.2")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Body).To(ContainSubstring(`"from":["/proxy/gw/filter/f","/service/shop/filter/lists"]`), "also of a request that passes")
	})

	It("of headers reach every filter that names them, before its own changes", func() {
		w := newWorld(ipAccess())
		put := func(config string) {
			GinkgoHelper()
			a, err := w.api.Do(limit(), http.MethodPut, "/list/secure?wait=applied", "application/json", `{"List_type":"headers","List_config":`+config+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeElementOf(200, 201), a.Body)
		}
		put(`{"template":true,"request":{"set":{"x-from":"%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}},"response":{"set":{"x-frame-options":"DENY","x-other":"list"}}}`)
		filter(w, "own", "route_filter_headers", `{"lists":["secure"],"response":{"set":{"x-other":"100%"}}}`, "/service/shop")
		filter(w, "other", "route_filter_headers", `{"lists":["secure"]}`, "/service/moved")
		Eventually(func(g Gomega) {
			a := w.send(request{})
			g.Expect(a.header.Get("X-Frame-Options") + " " + a.header.Get("X-Other") + " " + a.seen.Get("X-From")).To(Equal("DENY 100% 127.0.0.1"))
			g.Expect(w.send(request{host: "moved.test"}).header.Get("X-Frame-Options")).To(Equal("DENY"))
		}).Should(Succeed())
		put(`{"response":{"set":{"x-frame-options":"SAMEORIGIN"}}}`)
		Eventually(func(g Gomega) {
			a := w.send(request{})
			g.Expect(a.header.Get("X-Frame-Options") + " " + a.header.Get("X-Other") + " " + a.seen.Get("X-From")).To(Equal("SAMEORIGIN 100% "))
			g.Expect(w.send(request{host: "moved.test"}).header.Get("X-Frame-Options")).To(Equal("SAMEORIGIN"))
		}).Should(Succeed())
	})
})

var _ = Describe("A long list of addresses", func() {
	It("is sent once for all services that name it, and slows other changes down by little", func(ctx SpecContext) {
		w := newWorld(ipAccess())
		addresses := []string{}
		for i := range 9_999 {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", i%7, i/250, i%250))
		}
		write := func(first string) {
			GinkgoHelper()
			config, err := json.Marshal(append([]string{first}, addresses...))
			Expect(err).NotTo(HaveOccurred())
			a, err := w.api.Do(ctx, http.MethodPut, "/list/many?wait=applied", "application/json", `{"List_type":"addresses","List_config":{"addresses":`+string(config)+`}}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeElementOf(200, 201), a.Body)
		}
		without := w.routeChanges()
		write("127.0.0.2")
		services := []object{}
		for i := range number("GATEHOUSE_TEST_LIST_SERVICES", 50) {
			services = append(services, object{
				"service_name": fmt.Sprint("s", i), "fqdn": fmt.Sprintf("s%d.test", i), "proxies": []string{"gw"}, "filters": []string{"many"},
				"routes": []object{{"route_name": "root", "route_prefix": "/", "upstreams": []string{"blue"}}},
			})
		}
		document, err := json.Marshal(object{
			"version": 1, "services": services,
			"filters": []object{{"filter_name": "many", "filter_type": "vh_filter_ipaccess", "filter_config": object{"allow_lists": []string{"many"}}}},
		})
		Expect(err).NotTo(HaveOccurred())
		a, err := w.api.Do(ctx, http.MethodPut, "/config?wait=applied", "application/json", string(document))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		first, second := request{host: "s7.test", from: "127.0.0.2"}, request{host: "s8.test", from: "127.0.0.3"}
		Eventually(func() int { return w.send(first).status }).Should(Equal(200))
		Expect(w.send(second).status).To(Equal(403))

		size := map[string]int{}
		var resources []struct {
			Type     string
			Resource json.RawMessage
		}
		w.read("/proxy/gw/xds", "core_db_xds", &resources)
		for _, r := range resources {
			if r.Type == "extension" || !strings.Contains(string(r.Resource), "0a000100") {
				size[r.Type] += len(r.Resource)
			}
			Expect(r.Type == "extension" || !strings.Contains(string(r.Resource), "0a000100")).To(BeTrue())
		}
		Expect(size["extension"]).To(BeNumerically("<", 400_000), "all lists together")
		Expect(size["route"]).To(BeNumerically("<", len(services)*4000+20_000), "routes name the list only")

		with := w.routeChanges()
		var changes []time.Duration
		for i := range 6 {
			start := time.Now()
			write(fmt.Sprintf("127.0.0.%d", 2+i%2))
			other := second
			if i%2 == 0 {
				other = first
			}
			Eventually(func() int { return w.send(other).status }).WithPolling(5 * time.Millisecond).Should(Equal(200))
			changes = append(changes, time.Since(start))
		}
		AddReportEntry("lists", fmt.Sprintf("10,000 addresses, %d services: %d bytes of extensions, %d of routes (as JSON); a change of a route takes %s without and %s with the list; changes of the list took %s",
			len(services), size["extension"], size["route"], without, with, changes))
		Expect(with).To(BeNumerically("<", 4*without+30*time.Millisecond))
	}, NodeTimeout(5*time.Minute))
})
