package attack_test

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// countryTries are headers of a client of an unknown country that falsely claims to be in Germany, where 192.0.2.1 is.
func countryTries() []addressTry {
	return append(addressTries(), []addressTry{
		{[]string{"X-Gatehouse-Country: DE"}, 403},
		{[]string{"x-gatehouse-country: DE", "X-GATEHOUSE-COUNTRY: DE"}, 403},
		{[]string{"X-Gatehouse-Country: DE, DE"}, 403},
		{[]string{"X-Gatehouse-Country: DE", "Connection: X-Gatehouse-Country"}, 403},
		{[]string{"X_Gatehouse_Country: DE"}, 400},
		{[]string{"X-Country-Code: DE", "Cf-Ipcountry: DE", "Cloudfront-Viewer-Country: DE"}, 403},
		{[]string{"Gatehouse.country: DE", "X-Envoy-Geoip: DE"}, 403},
	}...)
}

var _ = Describe("A list of countries", func() {
	It("cannot be passed with headers, with a database and without", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "country.mmdb")
		Expect(testkit.WriteCountries(file, map[string]string{"192.0.2.1/32": "DE"})).To(Succeed())
		for _, args := range [][]string{{"--geoip-country", file}, nil} {
			t := startTarget(ctx, args...)
			t.add(ctx, "/filter", "Filter_name=germany", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow_countries":["DE"]}`)
			t.add(ctx, "/filter", "Filter_name=strangers", "Filter_type=vh_filter_ipaccess",
				`Filter_config={"deny_countries":["FR"],"unknown":"refuse"}`)
			t.add(ctx, "/globalconfig", "globalconfig_name=where", "globalconfig_type=globalconfig_geoip", `config={"country_header":"x-country-code"}`)
			t.link(ctx, "/service/shop/filter/strangers")
			t.link(ctx, "/service/shop/filter/germany?wait=applied")
			Eventually(func() string { return t.served("/") }).WithContext(ctx).Should(Equal("403"))
			before := t.blue.Requests()
			for _, try := range countryTries() {
				Expect(t.raw(ctx, append([]string{"GET / HTTP/1.1", "Host: shop.test"}, try.headers...)...).Status).
					To(Equal(try.status), "%q %q", args, try.headers)
			}
			Expect(t.blue.Requests()).To(Equal(before))
		}
	}, SpecTimeout(time.Minute))

	It("believes the proxies in front, and no further", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "country.mmdb")
		Expect(testkit.WriteCountries(file, map[string]string{"192.0.2.1/32": "DE", "127.0.0.1/32": "FR"})).To(Succeed())
		t := startTarget(ctx, "--geoip-country", file, "--trusted-hops", "1")
		t.add(ctx, "/filter", "Filter_name=germany", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow_countries":["DE"]}`)
		t.link(ctx, "/service/shop/filter/germany?wait=applied")
		Eventually(func() string { return t.served("/") }).WithContext(ctx).Should(Equal("403"))
		for forwarded, status := range map[string]int{
			"192.0.2.1": 200, "203.0.113.9, 192.0.2.1": 200, "192.0.2.1, 203.0.113.9": 403, "192.0.2.1,": 403, "DE": 403,
			"192.0.2.1, unknown": 403, "::ffff:192.0.2.1": 200,
		} {
			Expect(t.raw(ctx, "GET / HTTP/1.1", "Host: shop.test", "X-Forwarded-For: "+forwarded).Status).To(Equal(status), forwarded)
		}
	}, SpecTimeout(time.Minute))
})
