package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// toALS is the configuration of a log for the access log service of the collector.
func toALS(more map[string]any) map[string]any {
	config := map[string]any{"upstream": "grpc", "protocol": "als", "discloses": []string{"query", "referer", "metadata"}}
	for key, value := range more {
		config[key] = value
	}
	return config
}

// entry returns what the access log service got about the requests that contain a text; empty if nothing.
func entry(c *testkit.Collector, text string) (found string) {
	for _, e := range c.Entries() {
		if strings.Contains(e, text) {
			found += e
		}
	}
	return found
}

// besidesConsent returns all entries without what their configuration has a consent for: the path with its query, and
// the Referer.
func besidesConsent(c *testkit.Collector) string {
	GinkgoHelper()
	var all []any
	for _, text := range c.Entries() {
		var e map[string]any
		Expect(json.Unmarshal([]byte(text), &e)).To(Succeed())
		request, _ := e["request"].(map[string]any)
		delete(request, "path")
		delete(request, "referer")
		all = append(all, e)
	}
	return fmt.Sprint(all)
}

var _ = Describe("An access log for Envoy's access log service", func() {
	It("has Envoy's fields and those that are chosen, and no header that is not", func() {
		t := newTraced()
		t.trace(map[string]any{"upstream": "grpc"})
		issuer := testkit.NewTokenIssuer("https://issuer.test", "a")
		post(t.api, "/filter", "Filter_name=tokens", "Filter_type=http_filter_jwt", `Filter_config={"issuer":"https://issuer.test","jwks":`+issuer.JWKS()+`}`)
		post(t.api, "/service/shop/filter/tokens")
		post(t.api, "/secret", "Secret_name=key", "Secret_value=key-of-the-collector")
		t.log("audit", toALS(map[string]any{
			"credential": map[string]any{"secret": "key", "header": testkit.KeyHeader},
			"fields": []any{
				map[string]any{"name": "team", "value": "100%REQ(cookie)%"}, map[string]any{"name": "tenant", "header": "x-tenant"},
				map[string]any{"name": "backend", "response_header": strings.ToLower(testkit.BackendHeader)}, map[string]any{"name": "role", "claim": "realm.role"},
				map[string]any{"name": "absent", "header": "x-absent"},
			},
		}))
		token := issuer.Token(map[string]any{"sub": "ann", "realm": map[string]any{"role": "admin"}})
		a := t.get("shop.example", "/line?color=red", "X-Tenant: acme", "Referer: https://other.test/?page=2",
			"Cookie: session=secret-of-the-cookie", "Authorization: Bearer "+token)
		Expect(a.Status).To(Equal(http.StatusOK))
		Eventually(entry).WithArguments(t.collector, "/line").ShouldNot(BeEmpty())
		text := entry(t.collector, "/line")
		var e struct {
			Common struct {
				Tags     map[string]string `json:"customTags"`
				Metadata any               `json:"metadata"`
				Route    string            `json:"routeName"`
			} `json:"commonProperties"`
			Request, Response map[string]any
		}
		Expect(json.Unmarshal([]byte(text), &e)).To(Succeed())
		Expect(e.Common.Tags).To(And(HaveLen(6), HaveKeyWithValue("service", "shop"), HaveKeyWithValue("team", "100%REQ(cookie)%"),
			HaveKeyWithValue("tenant", "acme"), HaveKeyWithValue("backend", "blue"), HaveKeyWithValue("role", "admin"), HaveKey("trace_id")))
		Expect(e.Common.Route).To(Equal("root"))
		Expect(e.Request).To(And(HaveKeyWithValue("path", "/line?color=red"), HaveKeyWithValue("referer", "https://other.test/?page=2"), Not(HaveKey("requestHeaders"))))
		Expect(e.Response).To(And(HaveKeyWithValue("responseCode", BeEquivalentTo(200)), Not(HaveKey("responseHeaders"))))
		Expect(fmt.Sprint(e.Common.Metadata)).To(ContainSubstring("ann"), "why consent is asked for")
		Expect(text).NotTo(Or(ContainSubstring("secret-of-the-cookie"), ContainSubstring(token)))
		Expect(t.collector.Keys()).To(ContainElement("key-of-the-collector"))
	})

	It("has connections, too", func() {
		t := newTraced()
		red, port := talk("red", nil), freePort()
		addTalker(t.api, red)
		addL4(t.api, "db", "tcp", port, "*", "red")
		addL4(t.api, "dns", "udp", freePort(), "*", "red")
		t.log("audit", toALS(map[string]any{"fields": []any{map[string]any{"name": "team", "value": "x"}}}))
		Eventually(func() string {
			who(port, nil)
			return entry(t.collector, `"service":"db"`)
		}).Should(And(ContainSubstring(`"team":"x"`), ContainSubstring(`"upstreamCluster":"red"`)))
		Expect(t.plane.Records("envoy refused configuration and keeps what it had")).To(BeEmpty())
	})

	It("costs no request and little memory while the collector hangs, is away and comes back, and Envoy counts what is lost", func() {
		t := newTraced()
		admin := adminOf(t.plane)
		t.log("audit", toALS(nil))
		lost := func() string {
			found := regexp.MustCompile(`access_logs[.]grpc_access_log[.]logs_dropped: (\d+)`).FindStringSubmatch(read(admin, "/stats?filter=grpc_access_log"))
			Expect(found).NotTo(BeNil())
			return found[1]
		}
		t.get("shop.example", "/before")
		Eventually(entry).WithArguments(t.collector, "/before").ShouldNot(BeEmpty())
		traffic, stop := t.traffic("shop.example", 500)
		await(traffic, 500)
		before := allocated(admin)
		Expect(lost()).To(Equal("0"))
		t.collector.Hang()
		Eventually(lost).ShouldNot(Equal("0"))
		await(traffic, 1500)
		Expect(allocated(admin)-before).To(BeNumerically("<", 8<<20), "it hangs")
		Expect(t.collector.Close()).To(Succeed())
		await(traffic, 1500)
		Expect(allocated(admin)-before).To(BeNumerically("<", 8<<20), "it is away")
		Expect(read(admin, "/stats?filter=grpc/telemetry/audit[.]upstream_cx_connect_fail")).To(MatchRegexp(`: [1-9]`))
		Expect(t.collector.Start()).To(Succeed())
		again := func() string {
			t.get("shop.example", "/after")
			return entry(t.collector, "/after")
		}
		Eventually(again).ShouldNot(BeEmpty())
		stop()
	})

	It("is refused without the consent to what it discloses, and says why", func() {
		t := newTraced()
		const complete = `"discloses":["query","referer","metadata"]`
		for config, want := range map[string]map[string]string{
			`{"upstream":"grpc","protocol":"als"}`: {"config.discloses": "must name query, referer, metadata: entries of the protocol als have the path with its query, the Referer, " +
				"and the metadata of filters with the claims of tokens, and Envoy cannot leave them out"},
			`{"upstream":"grpc","protocol":"als","discloses":["query","metadata","all"]}`: {"config.discloses": "must name referer:", "config.discloses[2]": `"all" is not one of query, referer, metadata`},
			`{"upstream":"grpc","discloses":["query"]}`:                                   {"config.discloses": "is for the protocol als"},
			`{"upstream":"grpc","protocol":"syslog"}`:                                     {"config.protocol": "is not one of otlp, als"},
			`{"protocol":"als",` + complete + `}`:                                         {"config.upstream": "is required with the protocol als"},
			`{"upstream":"grpc","protocol":"als",` + complete + `,"omit":["path"],"rename":{"path":"url"},"path":"/x","text":"{path}"}`: {
				"config.omit": "fixed form", "config.rename": "fixed form", "config.path": "fixed form", "config.text": "is for standard output",
			},
			`{"upstream":"grpc","protocol":"als",` + complete + `,"fields":[{"name":"a","header":"authorization"},{"name":"b","header":"Cookie"}]}`: {
				"config.fields[0].header": "has credentials", "config.fields[1].header": "has credentials",
			},
		} {
			a, err := t.api.Do(limit(), http.MethodPost, "/globalconfig", "application/json",
				`{"globalconfig_name":"logs","globalconfig_type":"globalconfig_accesslog","config":`+config+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusBadRequest))
			for field, message := range want {
				Expect(fieldsOf(a.Body)).To(ContainElement(field), a.Body)
				Expect(a.Body).To(ContainSubstring(strings.ReplaceAll(message, `"`, `\"`)))
			}
		}
		By("a collector without gRPC")
		t.log("audit", map[string]any{"upstream": "http", "protocol": "als", "discloses": []string{"query", "referer", "metadata"}})
		Eventually(read).WithArguments(t.api, "/status").Should(ContainSubstring("gRPC needs h2c or h2"))
	})
})
