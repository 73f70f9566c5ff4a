package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// patch changes an object, everywhere.
func (w *world) patch(path string, fields ...string) {
	GinkgoHelper()
	a, err := w.api.Do(limit(), http.MethodPatch, path+"?wait=applied&timeout=30s", "application/x-www-form-urlencoded", strings.Join(fields, "&"))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), "PATCH %s: %s", path, a.Body)
}

var _ = Describe("A change of consumers", func() {
	It("applies to each request after it, a hundred times under load, with the scope of the filter, and changes no listener", func() {
		p := consumer()
		p.config = `{"allow":["gold"]}`
		w := newWorld(p)
		w.attach(onShop)
		before := w.listeners()
		header := withKey("partners", "web")
		gold, silver, onRoute := "200 acme gold", "403", "/service/shop/route/root/filter/silver"
		w.post("/filter", "Filter_name=silver", "Filter_type=http_filter_consumer", `Filter_config={"allow":["silver"]}`)
		var times phases
		times.begin("200 acme beta,gold")
		traffic := testkit.StartTraffic(testkit.TrafficOptions{
			Addr: fmt.Sprintf("127.0.0.1:%d", w.port), Host: "shop.test", Path: "/shop", Lines: []string{header},
			Rate: number("GATEHOUSE_TEST_CONSUMER_RATE", 500),
			Judge: func(e testkit.Exchange) error {
				said := saysConsumer(answerOf(e.Status, e.Header, e.Body))
				if !times.allows(said, e.Sent, e.Done) {
					return fmt.Errorf("says %q: %s", said, e.Body)
				}
				return nil
			},
		})
		DeferCleanup(traffic.Stop)
		last := "200 acme beta,gold"
		for i := range number("GATEHOUSE_TEST_CONSUMER_CHANGES", 50) {
			group, now := "gold", gold
			if i%2 == 0 {
				group, now = "silver", silver
			}
			times.begin(last, now)
			w.patch("/consumer/acme", "Consumer_groups="+group)
			times.begin(now)
			Expect(saysConsumer(w.send(request{header: []string{header}}))).To(Equal(now))
			last = now
			if i%10 == 4 { // a consumer of silver, whom the filter of the route lets in
				times.begin(silver, "200 acme silver")
				w.attach(onRoute)
				times.begin("200 acme silver")
				Expect(saysConsumer(w.send(request{header: []string{header}}))).To(Equal("200 acme silver"))
				times.begin("200 acme silver", silver)
				w.detach(onRoute)
				times.begin(silver)
			}
			w.post("/consumer?wait=applied", fmt.Sprint("Consumer_name=other", i), fmt.Sprintf(`Consumer_credentials={"keys":["partners/other%d"]}`, i))
		}
		report := traffic.Stop()
		AddReportEntry("traffic", report.String())
		Expect(report.Failures).To(BeEmpty(), report.String())
		Expect(report.Requests).To(BeNumerically(">", 0))
		Expect(w.listeners()).To(Equal(before))
	})

	It("is enforced on open connections within a second: a revoked key, a group, a credential and a consumer that are taken away", func() {
		p := consumer()
		p.config = `{"allow":["gold"]}`
		w := newWorld(p)
		w.attach(onShop)
		client := &http.Client{Timeout: time.Minute}
		ask := func() int {
			GinkgoHelper()
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/shop", w.port), http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			key, _ := keyOf("partners", "web")
			req.Host = "shop.test"
			req.Header.Set("X-Api-Key", key)
			resp, err := client.Do(req)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			return resp.StatusCode
		}
		// within makes a call without waiting for Envoys, and asks until the answer is another one.
		within := func(status int, method, path, body string) {
			GinkgoHelper()
			start := time.Now()
			a, err := w.api.Do(limit(), method, path, "application/x-www-form-urlencoded", body)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeNumerically("<", 300), a.Body)
			Eventually(ask).WithPolling(5*time.Millisecond).Should(Equal(status), path)
			AddReportEntry(method+" "+path, time.Since(start).String())
			Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second)) // a busy machine takes its time; the report says how long
		}
		const credentials = `Consumer_credentials={"keys":["partners/web"]}`
		Expect(ask()).To(Equal(200))
		within(403, "PATCH", "/consumer/acme", "Consumer_groups=silver")
		within(200, "PATCH", "/consumer/acme", "Consumer_groups=gold")
		within(403, "PATCH", "/consumer/acme", `Consumer_credentials={}`)
		within(200, "PATCH", "/consumer/acme", credentials)
		within(403, "DELETE", "/consumer/acme", "")
		within(200, "POST", "/consumer", "Consumer_name=acme&Consumer_groups=gold&"+credentials)
		within(401, "DELETE", "/keyset/partners/key/web", "")
	})

	It("moves a credential from one consumer to another in one document", func() {
		w := newWorld(consumer())
		w.attach(onShop)
		r := request{header: []string{withKey("partners", "web")}}
		Expect(saysConsumer(w.send(r))).To(Equal("200 acme beta,gold"))
		a, err := w.api.Do(limit(), http.MethodPut, "/config?wait=applied", "application/json",
			`{"version":1,"consumers":[{"consumer_name":"acme"},{"consumer_name":"zeta","consumer_groups":["x"],"consumer_credentials":{"keys":["partners/web"]}}]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(saysConsumer(w.send(r))).To(Equal("200 zeta x"))
	})
})

var _ = Describe("Many consumers", func() {
	It("do not slow down other changes, and a change of one applies immediately", func(ctx SpecContext) {
		w := newWorld(consumer())
		n := number("GATEHOUSE_TEST_CONSUMERS", 2000)
		var consumers []object
		for i := range n {
			consumers = append(consumers, object{
				"consumer_name": fmt.Sprint("many", i), "consumer_groups": []string{"gold", fmt.Sprint("g", i)},
				"consumer_credentials": object{"keys": []string{fmt.Sprint("many/k", i)}},
			})
		}
		document, err := json.Marshal(object{"version": 1, "consumers": consumers})
		Expect(err).NotTo(HaveOccurred())
		start := time.Now()
		a, err := w.api.Do(ctx, http.MethodPut, "/config", "application/json", string(document))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		stored := time.Since(start)

		without := w.routeChanges()
		w.attach(onShop)
		with := w.routeChanges()
		var applied []time.Duration
		r := request{header: []string{withKey("partners", "web")}}
		for i := range 10 {
			want := fmt.Sprintf("200 acme n%d", i)
			start := time.Now()
			a, err := w.api.Do(ctx, http.MethodPatch, "/consumer/acme", "application/x-www-form-urlencoded", fmt.Sprintf("Consumer_groups=n%d", i))
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			Eventually(func() string { return saysConsumer(w.send(r)) }).WithPolling(5 * time.Millisecond).Should(Equal(want))
			applied = append(applied, time.Since(start))
		}
		slices.Sort(applied)
		AddReportEntry("consumers", fmt.Sprintf("%d consumers: stored in %s; a change of a route %s without and %s with them; a change of one applies after %s (the slowest %s)",
			n, stored, without, with, applied[len(applied)/2], applied[len(applied)-1]))
		Expect(applied[len(applied)/2]).To(BeNumerically("<", time.Second))
		Expect(with).To(BeNumerically("<", 3*without+20*time.Millisecond))
	}, NodeTimeout(5*time.Minute))
})

var _ = Describe("Rules about consumers", func() {
	It("allow and deny them by name and by group, where a filter finds them", func() {
		p := rbac()
		p.config = `{"allow":[{"groups":["gold"],"methods":["GET"]},{"consumers":["ann"]}],"deny":[{"groups":["suspended"]},{"consumers":["acme"],"paths":[{"segment":"/shop/secret"}]}]}`
		w := newWorld(p)
		givenConsumers(w)
		w.attach(onShop)
		r := func(method, path, header string) request {
			return request{method: method, path: path, header: []string{header}}
		}
		acme, suspended, ann := withKey("partners", "web"), withKey("partners", "mobile"), basic("ann", annPassword)
		Expect(w.send(r("GET", "/shop", acme)).status).To(Equal(403), "nothing finds consumers")
		w.post("/filter", "Filter_name=known", "Filter_type=http_filter_consumer", `Filter_config={"required":false}`)
		w.attach("/service/shop/filter/known")
		for _, try := range []struct {
			request
			want int
		}{
			{r("GET", "/shop", acme), 200},
			{r("POST", "/shop", acme), 403},
			{r("GET", "/shop/secret", acme), 403},
			{r("GET", "/shop", suspended), 403},
			{r("POST", "/shop/secret", ann), 200},
			{r("GET", "/shop", basic("ben", annPassword)), 403},
		} {
			Expect(w.send(try.request).status).To(Equal(try.want), "%+v", try.request)
			status, _, _ := w.explained(try.request)
			Expect(status).To(Equal(try.want), "explain of %+v", try.request)
		}
	})
})
