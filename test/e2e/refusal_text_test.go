package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A refusal of the gateway", Ordered, ContinueOnFailure, func() {
	var gw gateway

	BeforeAll(func() {
		_, gw, _ = shop("--access-log", "off")
		post(gw.api, "/upstream", "Upstream_name=dead", "Upstream_ip=127.0.0.1", "Upstream_port=1")
		ill := backend("ill")
		ill.SetHealthy(false)
		addUpstream(gw.api, ill, "Upstream_hc_path="+testkit.HealthPath, "Upstream_hc_intervalseconds=1", "Upstream_hc_timeoutseconds=1")
		addUpstream(gw.api, backend("slow"))
		post(gw.api, "/service", "Service_Name=own", "fqdn=own.test")
		addRoute(gw.api, "own", "secret-empty", "/empty", "")
		addRoute(gw.api, "own", "dead", "/dead", "", "dead")
		addRoute(gw.api, "own", "ill", "/ill", "", "ill")
		addRoute(gw.api, "own", "slow", "/slow", `{"timeouts":{"request":"50ms"}}`, "slow")
		addRoute(gw.api, "own", "plain", "/plain", `{"websocket":false}`, "blue")
		addRoute(gw.api, "own", "fixed", "/fixed", "")
		addRoute(gw.api, "own", "limited", "/limited", "", "blue")
		for name, filter := range map[string]string{
			"fixed":   `"route_filter_directresponse","Filter_config":{"status":404,"body":"mine"}`,
			"callers": `"vh_filter_rbac","Filter_config":{"allow":[{}],"deny":[{"methods":["DELETE"]}]}`,
			"rate":    `"route_filter_ratelimit","Filter_config":{"per":"all","limit":"1/hour"}`,
		} {
			a, err := gw.api.Do(limit(), http.MethodPost, "/filter", "application/json", `{"Filter_name":"`+name+`","Filter_type":`+filter+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		}
		post(gw.api, "/service/own/route/fixed/filter/fixed")
		post(gw.api, "/service/own/route/limited/filter/rate")
		post(gw.api, "/service/own/filter/callers")
		post(gw.api, "/service", "Service_Name=narrow", "fqdn=narrow.test")
		addRoute(gw.api, "narrow", "root", "/only", "", "blue")
		post(gw.api, "/proxy/gw/service/narrow")
		post(gw.api, "/proxy/gw/service/own?wait=applied")
		remove(gw.api, "/proxy/gw/service/shop?wait=applied") // the service for all hosts
		gw.expect("own.test", "/limited", "blue")
	})

	DescribeTable("is a line of plain text without names of objects", func(host, target string, status int, line string, header ...string) {
		a := gw.get(host, target, header...)
		Expect(a.Status).To(Equal(status), a.Body)
		Expect(a.Body).To(Equal(line + "\n"))
		Expect(a.Header.Get("Content-Type")).To(Equal("text/plain"))
	},
		Entry("for an unknown host", "other.test", "/", 404, "nothing is served for this host and path"),
		Entry("for an unknown path", "narrow.test", "/", 404, "nothing is served for this host and path"),
		Entry("of a route without upstreams", "own.test", "/empty", 503, "this service is not available"),
		Entry("where nothing listens", "own.test", "/dead", 503, "the service is not available at the moment"),
		Entry("where a health check fails", "own.test", "/ill", 503, "the service is not available at the moment"),
		Entry("after a timeout", "own.test", "/slow?delay=2s", 504, "the service did not answer in time"),
		Entry("of a limit", "own.test", "/limited", 429, "the limit for this route is reached"),
		Entry("of a websocket", "own.test", "/plain", 403, "this is not allowed here", "Connection: Upgrade", "Upgrade: websocket"),
		Entry("of a Host that is not one", "a b", "/", 400, "the Host must be one host name or address, optionally with a port"),
		Entry("of a path with a zero", "own.test", "/%00", 400, "the request is malformed"),
	)

	It("leaves a fixed answer as it was configured", func() {
		a := gw.get("own.test", "/fixed")
		Expect(a.Status).To(Equal(http.StatusNotFound))
		Expect(a.Body).To(Equal("mine"))
	})

	It("is a message for gRPC clients", func() {
		a := gw.get("other.test", "/", "Content-Type: application/grpc")
		Expect(a.Header.Get("Grpc-Message")).To(Equal("nothing is served for this host and path%0A"))
	})

	// explained is what explain says about a request.
	explained := func(method, target string) explain.Answer {
		GinkgoHelper()
		var answer struct {
			Data struct {
				List []explain.Answer `json:"core_db_explain"`
			}
		}
		Expect(json.Unmarshal([]byte(read(gw.api, "/proxy/gw/explain?method="+method+"&url="+url.QueryEscape("http://own.test"+target))), &answer)).To(Succeed())
		Expect(answer.Data.List).To(HaveLen(1))
		return answer.Data.List[0]
	}

	It("is explained with the object that causes it", func() {
		a := explained("DELETE", "/dead")
		Expect(a.Code).To(Equal("access_refused"))
		Expect(a.Message).To(Equal("vh_filter_rbac callers does not allow DELETE /dead"))
		Expect(a.RefusedBy).To(Equal([]string{"/filter/callers"}))
		a = explained("GET", "/fixed")
		Expect(a.Message).To(Equal("route_filter_directresponse fixed answers 404 by itself: mine"))
		Expect(a.RefusedBy).To(Equal([]string{"/filter/fixed"}))
		a = explained("GET", "/empty")
		Expect(a.Message).To(Equal("the route has no upstream and answers 503"))
		Expect(a.RefusedBy).To(Equal([]string{"/service/own/route/secret-empty"}))
	})

	It("is predicted where no upstream gets requests", func() {
		Eventually(func() string { return explained("GET", "/ill").Code }).WithTimeout(20 * time.Second).Should(Equal(explain.NoHealthyUpstream))
		a := explained("GET", "/ill")
		Expect(a.Status).To(Equal(http.StatusServiceUnavailable))
		Expect(a.Message).To(HavePrefix("no upstream receives requests: upstream ill (127.0.0.1:"))
	})
})
