package rest_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ = Describe("A warning", func() {
	warning := func(list ...string) func(*rest.Options) {
		return func(o *rest.Options) {
			o.Warn = func(_ store.Reader, written store.Changes) ([]string, error) {
				for range written(model.KindFilter) {
					return list, nil
				}
				return nil, nil
			}
		}
	}
	const body = `{"filter_name":"limit","filter_type":"route_filter_ratelimit","filter_config":{"descriptors":[{"path":"x"}]}}`

	It("is a header of the write and of its dry run, each on one line of ASCII", func() {
		a := startAPI(warning("one", "two\r\nSet-Cookie: a=b é"))
		for _, path := range []string{"/filter?dry_run=true", "/filter"} {
			got := a.postJSON(path, body)
			Expect(got.header.Values("Gatehouse-Warning")).To(Equal([]string{"one", "two  Set-Cookie: a=b ?"}), path)
		}
		Expect(a.postJSON("/service", `{"service_name":"s","fqdn":"*"}`).header).NotTo(HaveKey("Gatehouse-Warning"))
		Expect(a.postJSON("/filter", body).header).NotTo(HaveKey("Gatehouse-Warning"), "a refused write did nothing")
	})

	It("has a limited size", func() {
		list := make([]string, 12)
		for i := range list {
			list[i] = strings.Repeat("x", 5000)
		}
		a := startAPI(warning(list...))
		values := a.postJSON("/filter", body).header.Values("Gatehouse-Warning")
		Expect(values).To(HaveLen(11))
		Expect(values[0]).To(HaveLen(503))
		Expect(values[10]).To(Equal("2 more warnings are in the status"))
	})

	It("is in the status of the proxies that it concerns, and once in that of a filter", func() {
		a, registry, _ := watched(append(shop(), "/filter", `Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"path":"x"}]}`,
			"/proxy", "Name=other", "/proxy/other/service/shop", "")...)
		for _, route := range []string{"a", "b"} {
			registry.SetConditions("rate limits of "+route, []model.Condition{{
				Key: model.RouteFilterKey("shop", route, "limit"), Code: model.NoRates, Message: "none", Proxies: []string{"gw"},
			}})
		}
		Expect(strings.Count(a.get("/proxy/gw/status").body, "NoRates")).To(Equal(2))
		Expect(a.get("/proxy/other/status").body).NotTo(ContainSubstring("NoRates"))
		Expect(strings.Count(strings.Join(a.get("/filter/limit").conditions(), "\n"), "NoRates+ none /service/shop/route/")).To(Equal(1))
	})
})
