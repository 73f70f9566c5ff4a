package policies_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// servicesAtOnce is the number of services in one configuration, each with its own combination of filters.
const servicesAtOnce = 50

// combine writes a configuration in which services, and a route of each, have random filters.
func combine(random *rand.Rand) (document []byte) {
	GinkgoHelper()
	var filters, services []any
	for _, p := range policies() {
		for i, config := range []string{p.config, p.changed} {
			var content any
			Expect(json.Unmarshal([]byte(config), &content)).To(Succeed())
			filters = append(filters, object{"filter_name": fmt.Sprint(p.kind, "-", i), "filter_type": p.kind, "filter_config": content})
		}
	}
	hosts := []string{"shop", "moved"}
	for n := range servicesAtOnce {
		name := fmt.Sprint("s", n)
		hosts = append(hosts, name)
		services = append(services, object{
			"service_name": name, "fqdn": name + ".test", "https": "both", "filters": choose(random, model.KindService),
			"routes": []object{
				{"route_name": "root", "route_prefix": "/shop", "upstreams": []string{"blue"}, "filters": choose(random, model.KindRoute)},
				{"route_name": "empty", "route_prefix": "/empty"},
			},
		})
	}
	document, err := json.Marshal(object{
		"version": 1, "filters": filters, "services": services, "proxies": []object{{"name": "gw", "services": hosts}},
	})
	Expect(err).NotTo(HaveOccurred())
	return document
}

// choose returns the names of filters of some types for a service or a route. At most one of them answers by itself, and
// one decides which requests are allowed.
func choose(random *rand.Rand, kind model.Kind) []string {
	names, answered, asked := []string{}, false, false
	for _, p := range policies() {
		asks := slices.Contains([]string{model.FilterJWT, model.FilterBasicAuth, model.FilterAnyOf}, p.kind)
		either := p.kind == model.FilterAPIKey && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, model.FilterAnyOf) })
		if p.unpredictable || random.IntN(3) > 0 || kind == model.KindRoute && !p.onRoutes() || model.Answers(p.kind) && (answered || random.IntN(3) > 0) || asks && asked || either {
			continue
		}
		answered, asked = answered || model.Answers(p.kind), asked || asks
		names = append(names, fmt.Sprint(p.kind, "-", random.IntN(2)))
	}
	return names
}

// anyRequest returns one of the requests of all types, for a service.
func anyRequest(random *rand.Rand, service string) request {
	var list []request
	for _, p := range policies() {
		if slices.ContainsFunc(p.requests, func(r request) bool { return r.asked }) {
			continue // those that contain instructions for a server might be answered in any combination
		}
		list = append(list, slices.DeleteFunc(slices.Clone(p.requests), func(r request) bool { return r.host != "" })...)
	}
	r := list[random.IntN(len(list))]
	r.host = service + ".test"
	return r
}

var _ = Describe("Filters that are combined at random", func() {
	It("allow what explain predicts, and refuse the rest", func(ctx SpecContext) {
		all := ipAccess()
		for _, p := range policies() {
			all.flags = append(all.flags, p.flags...)
		}
		w := newWorld(all)
		for _, p := range policies() {
			if p.given != nil {
				p.given(w)
			}
		}
		before := w.listeners()
		seed := uint64(number("GATEHOUSE_TEST_FIRST_SEED", 1)) //nolint:gosec // a small number
		rounds := (number("GATEHOUSE_TEST_COMBINATIONS", 1000) + servicesAtOnce - 1) / servicesAtOnce
		statuses := map[int]int{}
		for range rounds {
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable, no secret
			document := combine(random)
			a, err := w.api.Do(ctx, http.MethodPut, "/config?wait=applied&timeout=30s", "application/json", string(document))
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			for n := range servicesAtOnce {
				for range 2 {
					r := anyRequest(random, fmt.Sprint("s", n))
					got := w.send(r)
					status, body, _ := w.explained(r)
					about := fmt.Sprintf("GATEHOUSE_TEST_FIRST_SEED=%d GATEHOUSE_TEST_COMBINATIONS=1: %+v: %s", seed, r, strings.TrimSpace(got.body))
					Expect(got.status).To(Equal(status), about)
					if body != "" {
						Expect(got.body).To(Equal(body), about)
					}
					statuses[got.status]++
				}
			}
			seed++
		}
		AddReportEntry("answers by status", fmt.Sprint(statuses))
		Expect(w.listeners()).To(Equal(before))
	})
})
