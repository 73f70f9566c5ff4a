package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("API keys", func() {
	// keyed attaches filters to the services and routes of a world, each for the keys of a set.
	keyed := func(w *world, sets map[string]string) {
		GinkgoHelper()
		for place, config := range sets {
			name := fmt.Sprint("f", len(place))
			w.post("/filter", "Filter_name="+name, "Filter_type=http_filter_apikey", "Filter_config="+config)
			w.attach(place + "/filter/" + name)
		}
	}

	It("are valid only for their own set, whatever the names of others, and clients cannot choose their identity on other routes", func() {
		w := newWorld(apiKey())
		keyed(w, map[string]string{
			"/service/shop/route/root": `{"keys":"partners"}`, "/service/shop/route/empty": `{"keys":"partners.old"}`, "/service/moved": `{"keys":"staff","header":"X-Staff","clients":["web"]}`,
		})
		for _, try := range []struct {
			what, host, path, header, says string
		}{
			{"of the set", "", "", withKey("partners", "web"), "200 from partners/web"},
			{"of a set whose name begins so", "", "", withKey("partners.old", "web"), "403"},
			{"of another one", "", "", withKey("staff", "web"), "403"},
			{"of a set whose name is longer", "", "/empty", withKey("partners", "web"), "403"},
			{"of that set", "", "/empty", withKey("partners.old", "web"), "503"},
			{"in the header of another route", "moved.test", "", withKey("staff", "web"), "401"},
			{"in the header of the route", "moved.test", "", "X-Staff" + withKey("staff", "web")[len("X-Api-Key"):], "301"},
			{"of a client that is not named", "moved.test", "", "X-Staff" + withKey("staff", "mobile")[len("X-Api-Key"):], "403"},
		} {
			r := request{what: try.what, host: try.host, path: try.path, header: []string{try.header}}
			a := w.send(r)
			Expect(saysClient(a)).To(Equal(try.says), try.what)
			status, body, _ := w.explained(r)
			Expect(status).To(Equal(a.status), try.what)
			if body != "" {
				Expect(body).To(Equal(a.body), try.what)
			}
		}
		w.post("/service/shop/route", "Route_Name=open", "Route_prefix=/open")
		w.attach("/service/shop/route/open/upstream/blue")
		Expect(saysClient(w.send(request{path: "/open", header: []string{"X-Client: boss", "X-Gatehouse-Key: Basic x"}}))).To(Equal("200"))
	})

	It("are refused on open connections after they are revoked", func() {
		w := newWorld(apiKey())
		keyed(w, map[string]string{"/service/shop": `{"keys":"partners"}`})
		client := &http.Client{Timeout: time.Minute}
		key, _ := keyOf("partners", "web")
		ask := func() int {
			GinkgoHelper()
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/shop", w.port), http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			req.Host = "shop.test"
			req.Header.Set("X-Api-Key", key)
			resp, err := client.Do(req)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			return resp.StatusCode
		}
		Expect(ask()).To(Equal(200))
		before := w.listeners()
		w.detach("/keyset/partners/key/web")
		Expect(ask()).To(Equal(401))
		Expect(w.listeners()).To(Equal(before))
		a, err := w.api.Delete(limit(), "/keyset/partners")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusConflict), "a filter names it")
	})
})

var _ = Describe("An API key that expires", func() {
	It("is refused within a second, on open connections too, and valid again with another end", func() {
		w := newWorld(apiKey())
		w.attach(onShop)
		before := w.listeners()
		_, hash := keyOf("partners", "short")
		end := time.Now().Add(3 * time.Second)
		w.post("/keyset/partners/key?wait=applied", "Key_name=short", "Key_hash="+hash, "Key_expires="+end.Format(time.RFC3339Nano))
		client := &http.Client{Timeout: time.Minute}
		ask := func() int {
			GinkgoHelper()
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/shop", w.port), http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			req.Host = "shop.test"
			key, _ := keyOf("partners", "short")
			req.Header.Set("X-Api-Key", key)
			resp, err := client.Do(req)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			return resp.StatusCode
		}
		Eventually(ask).Should(Equal(200))
		Eventually(ask).WithPolling(10 * time.Millisecond).Should(Equal(401))
		Expect(time.Now()).To(BeTemporally(">=", end))
		AddReportEntry("late", time.Since(end).String())
		Expect(w.send(request{header: []string{withKey("partners", "web")}}).status).To(Equal(200), "others stay valid")
		status, _, _ := w.explained(request{header: []string{withKey("partners", "short")}})
		Expect(status).To(Equal(401))
		a, err := w.api.Get(limit(), "/keyset/partners/key/short")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Body).To(ContainSubstring(`"code":"KeyExpired"`))
		a, err = w.api.Do(limit(), http.MethodPatch, "/keyset/partners/key/short?wait=applied", "application/json", `{"Key_expires":""}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Eventually(ask).Should(Equal(200))
		Expect(w.listeners()).To(Equal(before))
	})

	It("is none from the start, if it had ended before it was written", func() {
		w := newWorld(apiKey())
		w.attach(onShop)
		_, hash := keyOf("partners", "old")
		w.post("/keyset/partners/key?wait=applied", "Key_name=old", "Key_hash="+hash, "Key_expires=2020-01-01T00:00:00Z")
		Expect(w.send(request{header: []string{withKey("partners", "old")}}).status).To(Equal(401))
	})
})

var _ = Describe("Many API keys", func() {
	It("do not slow down other changes, and a revoked one is refused immediately", func(ctx SpecContext) {
		w := newWorld(apiKey())
		keys := []object{}
		for i := range number("GATEHOUSE_TEST_KEYS", 2000) {
			_, hash := keyOf("many", fmt.Sprint("k", i))
			keys = append(keys, object{"key_name": fmt.Sprint("k", i), "key_hash": hash})
		}
		document, err := json.Marshal(object{"version": 1, "keysets": []object{{"keyset_name": "many", "keys": keys}}})
		Expect(err).NotTo(HaveOccurred())
		a, err := w.api.Do(ctx, http.MethodPut, "/config", "application/json", string(document))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)

		without := w.routeChanges()
		w.post("/filter", "Filter_name=many", "Filter_type=http_filter_apikey", `Filter_config={"keys":"many"}`)
		w.attach("/service/shop/filter/many")
		with := w.routeChanges()
		var revoked []time.Duration
		for i := range 10 {
			name := fmt.Sprint("k", i)
			r := request{header: []string{withKey("many", name)}}
			Expect(w.send(r).status).To(Equal(200))
			start := time.Now()
			a, err := w.api.Delete(ctx, "/keyset/many/key/"+name)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			Eventually(func() int { return w.send(r).status }).WithPolling(5 * time.Millisecond).Should(Equal(401))
			revoked = append(revoked, time.Since(start))
		}
		slices.Sort(revoked)
		AddReportEntry("keys", fmt.Sprintf("%d keys: a change of a route %s without and %s with them; revoked after %s (the slowest %s)",
			len(keys), without, with, revoked[len(revoked)/2], revoked[len(revoked)-1]))
		Expect(revoked[len(revoked)/2]).To(BeNumerically("<", time.Second))
		Expect(with).To(BeNumerically("<", 3*without+20*time.Millisecond))
	}, NodeTimeout(5*time.Minute))
})

// routeChanges returns how long a change of a route takes until Envoy has it: the least of several, which says most
// about the work where the machine has more to do.
func (w *world) routeChanges() time.Duration {
	GinkgoHelper()
	var all []time.Duration
	for range 15 {
		start := time.Now()
		w.post("/service/moved/route?wait=applied", "Route_Name=x", "Route_prefix=/x")
		all = append(all, time.Since(start))
		w.detach("/service/moved/route/x")
	}
	return slices.Min(all)
}
