package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The list of who is limited", func() {
	It("has the limits of the proxy", func() {
		_, gw, _ := shop()
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+rates(2))
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"x"}]}`)
		post(gw.api, "/service/shop/filter/limit?wait=applied")
		for range 5 {
			_, err := sendFrom(gw, "127.0.16.9", http.MethodGet, "/", "", "")
			Expect(err).NotTo(HaveOccurred())
		}
		counts := regexp.MustCompile(`"resets_in":[1-9][0-9]{0,5},`).ReplaceAllString(read(gw.api, "/proxy/gw/ratelimit"), "")
		Expect(counts).To(MatchJSON(`{"data":{"core_db_ratelimit":[{
			"globalconfig_name":"rates","domain":"edge","counted":true,
			"limits":[{"limit":"remote_address","unit":"week","requests_per_unit":2,"routes":["shop/*"],"hits":5,"near":1,"over":3,"shadow":0}],
			"top":[{"limit":"remote_address","value":"remote_address=127.0.16.9","shadow":false,"over":3,"error":0}]}]}}`))
		Expect(read(gw.api, "/status")).To(ContainSubstring(`"rate_limits":"embedded"`))

		By("on a terminal, in place")
		p, err := testkit.SpawnOnTerminal([]string{"GATEHOUSE_SERVER=" + gw.api.URL}, "ratelimit", "top", "gw", "--every", "20ms")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Kill)
		Eventually(p.Stdout.String).Should(MatchRegexp(`(?s)^\x1b\[Hrates: domain edge.*remote_address=127\.0\.16\.9  2/week  \S+ +shop/\*  3     remote_address\x1b\[K\n\x1b\[J.*\x1b\[Hrates`))
		Expect(p.Signal(syscall.SIGINT)).To(Succeed())
		Expect(p.Wait(limit())).To(BeZero())
	})
})

var _ = Describe("Explain about rate limits", func() {
	// everyKind is a descriptor of each kind.
	const everyKind = `{"descriptors":[
		{"remote_address":"x"}, {"masked_remote_address":{"v4_prefix_mask_len":20}}, {"generic_key":"fixed","method":"x"},
		{"request_headers":"x-key"}, {"request_headers":{"header_name":"accept","descriptor_key":"a","skip_if_absent":true},"path":"x"},
		{"query_parameters":"k"}, {"request_headers":{"header_name":"host","descriptor_key":"h"}},
		{"header_value_match":{"descriptor_value":"key","headers":[{"name":"x-key"}]}},
		{"header_value_match":{"descriptor_key":"odd","descriptor_value":"none","headers":[{"name":"x-key"}],"no_match":true}}]}`

	descriptors := func(gw gateway, target, header string) (list []explain.Descriptor) {
		GinkgoHelper()
		query := url.Values{"url": {"http://shop.example" + target}, "address": {"127.0.16.9"}}
		if header != "" {
			query.Set("header", header)
		}
		var answer struct {
			Data struct {
				List []explain.Answer `json:"core_db_explain"`
			}
		}
		Expect(json.Unmarshal([]byte(read(gw.api, "/proxy/gw/explain?"+query.Encode())), &answer)).To(Succeed())
		Expect(answer.Data.List).To(HaveLen(1))
		for _, f := range answer.Data.List[0].Filters {
			list = append(list, f.Descriptors...)
		}
		Expect(list).To(HaveLen(9))
		return list
	}

	// closing returns a config whose only rule allows no such descriptor.
	closing := func(d explain.Descriptor) string {
		GinkgoHelper()
		var rules []map[string]any
		for i := len(d.Entries) - 1; i >= 0; i-- {
			rule := map[string]any{"key": d.Entries[i].Key, "value": d.Entries[i].Value}
			if rules == nil {
				rule["rate_limit"] = map[string]any{"unit": "week", "requests_per_unit": 0}
			} else {
				rule["descriptors"] = rules
			}
			rules = []map[string]any{rule}
		}
		text, err := json.Marshal(map[string]any{"config": map[string]any{"domain": "edge", "descriptors": rules}})
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	DescribeTable("matches what Envoy sends", func(target, name, value string, sent int) {
		_, gw, _ := shop()
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", `config={"domain":"edge","descriptors":[]}`)
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", "Filter_config="+everyKind)
		post(gw.api, "/service/shop/filter/limit?wait=applied")
		header := ""
		if name != "" {
			header = name + ": " + value
		}
		for _, d := range descriptors(gw, target, header) {
			if !d.Sent {
				continue
			}
			sent--
			a, err := gw.api.Do(limit(), http.MethodPatch, "/globalconfig/rates?wait=applied", "application/json", closing(d))
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			got, err := sendFrom(gw, "127.0.16.9", http.MethodGet, target, name, value)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.StatusCode).To(Equal(http.StatusTooManyRequests), d.Message)
		}
		Expect(sent).To(BeZero(), "of the descriptors are not reported")
	},
		Entry("without anything", "/", "", "", 6),
		Entry("with a key", "/a//b/../c?k=1&k=2", "X-Key", "Ann", 8),
		Entry("with escapes", "/a%41?x&%6b=%61+%zz%4", "Accept", "a/b", 7),
		Entry("with an empty parameter", "/?k=", "X-Key", "a_b", 8),
	)
})
