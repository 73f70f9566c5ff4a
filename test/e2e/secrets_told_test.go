package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Traces, logs and metrics", func() {
	It("have none of the keys and tokens of clients, backends and operators", func() {
		const admin, word, cookie, collected = "admin-token-of-the-operator", "password-of-ann-and-bob", "cookie-of-a-session", "key-of-the-collector"
		issuer := testkit.NewTokenIssuer("https://issuer.test", "a")
		token := issuer.Token(map[string]any{"sub": "ann"})
		collector, err := testkit.StartCollector()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(collector.Close)
		port, dir := freePort(), logDir()
		g := start([]string{"GATEHOUSE_API_ADMIN_TOKEN=" + admin, "OTEL_BSP_SCHEDULE_DELAY=100"},
			append(standaloneArgs(GinkgoT().TempDir(), port), "--log-level", "debug", "--access-log-dir", dir,
				"--otlp-traces", fmt.Sprintf("http://127.0.0.1:%d", collector.HTTP))...)
		blue := backend("blue")
		call := func(method, path, body string) testkit.Answer {
			GinkgoHelper()
			req, err := http.NewRequestWithContext(limit(), method, g.API.URL+path, strings.NewReader(body))
			Expect(err).NotTo(HaveOccurred())
			req.Header.Set("Authorization", "Bearer "+admin)
			req.Header.Set("Content-Type", "application/json")
			a, err := g.API.Send(req)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
			return a
		}
		config := func(kind, name, text string) map[string]any {
			return map[string]any{kind + "_name": name, kind + "_type": kind + "_" + strings.TrimPrefix(name, "second-"), "config": json.RawMessage(text)}
		}
		routes, filters := []any{}, []any{}
		for name, filter := range map[string][2]string{
			"key":   {"http_filter_apikey", `{"keys":"partners"}`},
			"basic": {"http_filter_basicauth", `{"users":[{"name":"ann","password":"` + word + `"}]}`},
			"token": {"http_filter_jwt", `{"issuer":"https://issuer.test","jwks":` + issuer.JWKS() + `,"from":{"query":"access"}}`},
		} {
			filters = append(filters, map[string]any{"filter_name": name, "filter_type": filter[0], "filter_config": json.RawMessage(filter[1])})
			routes = append(routes, map[string]any{"route_name": name, "route_prefix": "/" + name, "upstreams": []string{"blue"}, "filters": []string{name}})
		}
		text, err := json.Marshal(map[string]any{
			"version": 1, "filters": filters,
			"keysets": []any{map[string]any{"keyset_name": "partners"}},
			"secrets": []any{map[string]any{"secret_name": "collector", "secret_value": collected}},
			"upstreams": []any{
				map[string]any{"upstream_name": "blue", "upstream_ip": "127.0.0.1", "upstream_port": blue.Port},
				map[string]any{"upstream_name": "collector", "upstream_ip": "127.0.0.1", "upstream_port": collector.GRPC, "upstream_protocol": "h2c"},
			},
			"globalconfigs": []any{
				config("globalconfig", "tracing", `{"upstream":"collector","upstream_spans":true,"credential":{"secret":"collector"}}`),
				config("globalconfig", "accesslog", `{"upstream":"collector","credential":{"secret":"collector"}}`),
				config("globalconfig", "second-accesslog", `{}`),
				config("globalconfig", "metrics", `{"routes":true,"bytes":true,"retries":true}`),
				map[string]any{"globalconfig_name": "file", "globalconfig_type": "globalconfig_accesslog", "config": map[string]any{"file": true}},
				map[string]any{"globalconfig_name": "als", "globalconfig_type": "globalconfig_accesslog", "config": map[string]any{
					"upstream": "collector", "credential": map[string]any{"secret": "collector"}, "protocol": "als", "discloses": []string{"query", "referer", "metadata"},
				}},
				map[string]any{"globalconfig_name": "third", "globalconfig_type": "globalconfig_accesslog", "config": map[string]any{
					"text": "text {path} {authority} {user_agent} {response_code_details} {client} {subject} {request_id} {upstream_transport_failure}",
				}},
			},
			"services": []any{map[string]any{"service_name": "shop", "fqdn": "*", "routes": routes, "proxies": []string{"gw"}}},
		})
		Expect(err).NotTo(HaveOccurred())
		call(http.MethodPost, "/proxy", `{"name": "gw"}`)
		call(http.MethodPut, "/config?wait=applied&timeout=30s", string(text))

		var made struct{ Data struct{ Key string } }
		Expect(json.Unmarshal([]byte(call(http.MethodPost, "/keyset/partners/key?wait=applied", `{"key_name": "mobile"}`).Body), &made)).To(Succeed())
		gw, key := gateway{g.API, port}, made.Data.Key
		refused := ""
		for i, credentials := range [][]string{{key, word, token}, {"x" + key, "x" + word, "x" + token}} {
			own := []string{"Cookie: session=" + cookie, "Referer: https://other.test/?code=" + token, "Accept: text/html"}
			send := func(path string, header ...string) {
				GinkgoHelper()
				a := gw.get("shop.example", path, append(header, own...)...)
				Expect(a.Status).To(Equal([]int{http.StatusOK, http.StatusUnauthorized}[i]), path)
				refused += a.Body
			}
			send("/key?header=set-cookie:"+cookie, "X-Api-Key: "+credentials[0])
			send("/basic", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("ann:"+credentials[1])))
			send("/token?access=" + credentials[2])
			if i == 0 {
				refused = "" // these are the backend's
			}
		}
		Eventually(func() int { return len(collector.Lines()) }).Should(BeNumerically(">=", 6))
		Eventually(func() int { return len(collector.Entries()) }).Should(BeNumerically(">=", 6))
		Eventually(func() string { return fmt.Sprint(collector.Spans()) }).Should(And(ContainSubstring("/token"), ContainSubstring("PUT /config")))
		Eventually(g.Stdout.String).Should(And(MatchRegexp(`(?m)^text /token `), ContainSubstring(`"path":"/token"`)))
		Eventually(func() []any { return paths(logged(dir)) }).Should(HaveLen(6))
		file, err := os.ReadFile(dir + "/file.log")
		Expect(err).NotTo(HaveOccurred())
		metrics, stats := call(http.MethodGet, "/metrics", "").Body, read(adminOf(g), "/stats/prometheus")
		Expect(metrics).To(ContainSubstring("gatehouse_revision"))
		Expect(stats).To(ContainSubstring(`gatehouse_service_duration`))
		told := fmt.Sprint(collector.Lines(), besidesConsent(collector), collector.Spans(), string(file), g.Stdout, g.Stderr, metrics, refused,
			stats, read(adminOf(g), "/config_dump"))
		for what, secret := range map[string]string{
			"the token of the API": admin, "the key of the collector": collected, "an API key": key, "a password": word,
			"a password in base64": base64.StdEncoding.EncodeToString([]byte("ann:" + word)), "a token": token, "a cookie": cookie,
		} {
			Expect(strings.Contains(told, secret)).To(BeFalse(), what)
		}
	})
})
