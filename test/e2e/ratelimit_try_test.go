package e2e_test

import (
	"encoding/json"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// all reads a list.
func all(api testkit.API, path string, into any) {
	GinkgoHelper()
	var body struct{ Data map[string]json.RawMessage }
	Expect(json.Unmarshal([]byte(read(api, path)), &body)).To(Succeed())
	for _, list := range body.Data { // there is one
		Expect(json.Unmarshal(list, into)).To(Succeed())
	}
}

var _ = Describe("The result of a test of rate limits", func() {
	// hits returns the hits of every limit of the proxy, by domain and path.
	hits := func(gw gateway) map[string]int {
		GinkgoHelper()
		var answer []struct {
			Domain string
			Limits []struct {
				Limit string
				Hits  int
			}
		}
		all(gw.api, "/proxy/gw/ratelimit", &answer)
		counts := map[string]int{}
		for _, d := range answer {
			for _, l := range d.Limits {
				if l.Hits > 0 {
					counts[d.Domain+" "+l.Limit] = l.Hits
				}
			}
		}
		return counts
	}
	// told returns the hits that the test predicts for a request.
	told := func(gw gateway, method, target, header string) map[string]int {
		GinkgoHelper()
		query := url.Values{"url": {"http://shop.example" + target}, "method": {method}, "address": {"127.0.0.1"}}
		if header != "" {
			query.Set("header", header)
		}
		var answer []struct {
			Basis       string
			Descriptors []struct {
				Domain string
				Sent   bool
				Config string `json:"globalconfig_name"`
				Limit  *struct {
					Limit     string
					Unlimited bool
				}
			}
		}
		all(gw.api, "/proxy/gw/ratelimit/test?"+query.Encode(), &answer)
		Expect(answer).To(HaveLen(1))
		Expect(answer[0].Basis).To(Equal("envoys"))
		counts := map[string]int{}
		for _, d := range answer[0].Descriptors {
			if d.Limit != nil && !d.Limit.Unlimited {
				Expect(d.Sent).To(BeTrue())
				Expect(d.Config).To(Equal(map[string]string{"edge": "a-edge", "api": "b-api"}[d.Domain]))
				counts[d.Domain+" "+d.Limit.Limit]++
			}
		}
		return counts
	}

	It("matches what the engine counts for the real request", func() {
		_, gw, _ := shop()
		post(gw.api, "/globalconfig", "globalconfig_name=a-edge", "globalconfig_type=globalconfig_ratelimit", `config={"domain":"edge","descriptors":[
			{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":1000}},
			{"key":"method","value":"POST","rate_limit":{"unit":"week","requests_per_unit":1000},"shadow_mode":true},
			{"key":"path","value":"/a*","rate_limit":{"unit":"week","requests_per_unit":1000}},
			{"key":"path","value":"/a/open","rate_limit":{"unlimited":true}},
			{"key":"api_key","rate_limit":{"unit":"week","requests_per_unit":1000}},
			{"key":"api_key","value":"gold","descriptors":[{"key":"page","rate_limit":{"unit":"week","requests_per_unit":1000}}]}]}`)
		post(gw.api, "/globalconfig", "globalconfig_name=b-api", "globalconfig_type=globalconfig_ratelimit", `config={"domain":"api","descriptors":[
			{"key":"generic_key","value":"api","descriptors":[{"key":"method","rate_limit":{"unit":"week","requests_per_unit":1000}}]}]}`)
		addRoute(gw.api, "shop", "api", "/a/api", "", "blue")
		addRoute(gw.api, "shop", "none", "/none", "")
		for name, config := range map[string]string{
			"edge": `{"descriptors":[{"remote_address":"x"},{"method":"x"},{"path":"x"},
				{"request_headers":{"header_name":"x-key","descriptor_key":"api_key"},"query_parameters":{"query_parameter_name":"page","descriptor_key":"page","skip_if_absent":true}}]}`,
			"api":  `{"domain":"api","descriptors":[{"generic_key":"api","method":"x"},{"generic_key":"api"}]}`,
			"gone": `{"domain":"gone","descriptors":[{"remote_address":"x"}]}`,
		} {
			post(gw.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_ratelimit", "Filter_config="+config)
		}
		post(gw.api, "/service/shop/filter/edge")
		post(gw.api, "/service/shop/route/api/filter/gone")
		applied(gw.api, "POST", "/service/shop/route/api/filter/api")

		counted := hits(gw)
		Expect(counted).To(BeEmpty())
		for _, r := range []struct {
			method, target, key string
			limits              int
		}{
			{"GET", "/", "", 1},
			{"POST", "/", "", 2},
			{"GET", "/a", "", 2},
			{"GET", "/a/open", "", 1},
			{"GET", "/a/open?x", "", 1},
			{"GET", "/", "ann", 2},
			{"GET", "/?page=1", "ann", 1},
			{"GET", "/?page=1", "gold", 2},
			{"GET", "/", "gold", 1},
			{"GET", "/b/..//a/api", "", 3},
			{"POST", "/a/api?page=2", "gold", 5},
			{"GET", "/none", "ann", 0},
		} {
			header, name := "", ""
			if r.key != "" {
				header, name = "x-key: "+r.key, "x-key"
			}
			want := told(gw, r.method, r.target, header)
			Expect(hits(gw)).To(Equal(counted), "a test counts nothing")
			_, err := sendFrom(gw, "127.0.0.1", r.method, r.target, name, r.key)
			Expect(err).NotTo(HaveOccurred())
			sum := 0
			for _, n := range want {
				sum += n
			}
			Expect(sum).To(Equal(r.limits), "%v: %v", r, want)
			for limit, n := range counted {
				want[limit] += n
			}
			counted = hits(gw)
			Expect(counted).To(Equal(want), "%v", r)
		}
	})
})
