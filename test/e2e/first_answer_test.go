package e2e_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// specificationCalls makes the calls of the specification's endpoint table.
func specificationCalls(call func(path string, fields ...string) string, b *testkit.Backend, proxy ...string) {
	GinkgoHelper()
	Expect(call("/upstream", "Upstream_name=blue", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(b.Port),
		"Upstream_hc_path=/healthz", "Upstream_weight=100")).To(Equal(`{"data":{"insert_core_db_upstream":{"affected_rows":1}}}`))
	Expect(call("/service", "Service_Name=shop", "fqdn=*")).To(Equal(`{"data":{"insert_core_db_service":{"affected_rows":1}}}`))
	Expect(call("/service/shop/route", "Route_Name=root", "Route_prefix=/")).To(Equal(`{"data":{"insert_core_db_route":{"affected_rows":1}}}`))
	Expect(call("/service/shop/route/root/upstream/blue")).To(Equal(`{"data":{"insert_core_db_route_upstream":{"affected_rows":1}}}`))
	Expect(call("/proxy", append([]string{"Name=gw"}, proxy...)...)).To(Equal(`{"name":"gw"}`))
	Expect(call("/proxy/gw/service/shop")).To(Equal(`{"data":{"insert_core_db_proxy_service":{"affected_rows":1}}}`))
}

// expectDump compares the dump of the service with that of the specification; only the
// timestamp is not known in advance.
func expectDump(dump string, b *testkit.Backend) {
	GinkgoHelper()
	var parsed struct {
		Data map[string][]struct {
			CreateTS string `json:"create_ts"`
		}
	}
	Expect(json.Unmarshal([]byte(dump), &parsed)).To(Succeed())
	Expect(parsed.Data["core_db_service"]).To(HaveLen(1))
	created := parsed.Data["core_db_service"][0].CreateTS
	Expect(created).To(MatchRegexp(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$`))
	Expect(strings.ReplaceAll(dump, created, "<time>")).To(Equal(`{"data":{"core_db_service":[` +
		`{"service_id":1,"service_name":"shop","fqdn":"*","create_ts":"<time>","routes":[` +
		`{"route_id":1,"route_name":"root","route_prefix":"/","route_upstreams":[` +
		`{"upstream":{"upstream_id":1,"upstream_name":"blue","upstream_ip":"127.0.0.1","upstream_port":` + strconv.Itoa(b.Port) + `}}` +
		`],"route_filters":[]}],"service_secrets":[],"service_filters":[]}]}}`))
}

// through returns a function that makes calls with an HTTP client.
func through(api testkit.API) func(path string, fields ...string) string {
	return func(path string, fields ...string) string {
		GinkgoHelper()
		a := post(api, path, fields...)
		Expect(a.Header.Get("Content-Type")).To(Equal("application/json"))
		Expect(a.Header.Get("Gatehouse-Revision")).To(MatchRegexp(`^[1-9]\d*$`))
		return a.Body
	}
}

func curl(args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(limit(), "curl", append([]string{"-sS"}, args...)...).Output()
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}

var _ = Describe("A request through Envoy", func() {
	It("is answered by the backend after the specification's curl lines to an empty standalone gateway", func() {
		g, gw := standalone()
		b := backend("blue")
		specificationCalls(func(path string, fields ...string) string {
			GinkgoHelper()
			args := []string{"-X", "POST", g.API.URL + path}
			for _, f := range fields {
				args = append(args, "-d", f)
			}
			return curl(args...)
		}, b)
		expectDump(curl(g.API.URL+"/service/dump/shop"), b)

		gw.expect("shop.example", "/", "blue")
		var echo testkit.Echo
		Expect(json.Unmarshal([]byte(curl("http://127.0.0.1:"+strconv.Itoa(gw.port)+"/cart?item=1")), &echo)).To(Succeed())
		Expect(echo.Backend).To(Equal("blue"))
		Expect(echo.Path).To(Equal("/cart?item=1"))
	})

	DescribeTable("is answered by the backend with serve and an Envoy from gatehouse bootstrap",
		func(databaseURL func() []string) {
			g := serve(databaseURL()...)
			b := backend("blue")
			port := freePort()
			gw := gateway{g.API, port}

			envoy := envoyFor("gw", g.XDSAddr)
			Expect(read(envoy.Admin, "/ready")).To(Equal("LIVE\n"), "an Envoy without a proxy object is live")
			Expect(read(envoy.Admin, "/listeners")).To(BeEmpty())
			_, err := gw.send(http.MethodGet, "", "/")
			Expect(err).To(MatchError(ContainSubstring("connection refused")))

			specificationCalls(through(g.API), b, "Http_port="+strconv.Itoa(port), "Listen_ip=127.0.0.1")
			expectDump(read(g.API, "/service/dump/shop"), b)
			gw.expect("shop.example", "/cart", "blue")
		},
		Entry("over SQLite", func() []string { return nil }),
		Entry("over Postgres", func() []string { return []string{"--database-url", startPostgres().URL("gatehouse")} }),
	)

	It("reaches every Envoy of its proxy's name, and no other", func() {
		g := serve()
		blue, green := backend("blue"), backend("green")
		shared, own := freePort(), freePort()
		addUpstream(g.API, blue)
		addUpstream(g.API, green)
		addService(g.API, "blue", "blue.example", "blue")
		addService(g.API, "green", "green.example", "green")
		addProxy(g.API, "twins", shared, "blue")
		addProxy(g.API, "single", own, "green")
		// Two Envoys on one machine share the port: the kernel distributes the
		// connections.
		first, second, single := envoyFor("twins", g.XDSAddr), envoyFor("twins", g.XDSAddr), envoyFor("single", g.XDSAddr)

		twins := gateway{g.API, shared}
		Eventually(func(check Gomega) {
			check.Expect(twins.answers("blue.example", "/")).To(Equal("blue"))
			check.Expect(requestsSeen(first)).To(BeNumerically(">", 0))
			check.Expect(requestsSeen(second)).To(BeNumerically(">", 0))
		}).Should(Succeed())
		Expect(requestsSeen(single)).To(BeZero())
		Expect(twins.answers("green.example", "/")).To(Equal("404"))

		gateway{g.API, own}.expect("green.example", "/", "green")
		Expect(gateway{g.API, own}.answers("blue.example", "/")).To(Equal("404"))
		Expect(read(single.Admin, "/clusters")).NotTo(ContainSubstring("blue"))
	})
})

// requestsSeen returns the number of requests on an Envoy's HTTP listener.
func requestsSeen(e *testkit.Envoy) int {
	GinkgoHelper()
	stat := read(e.Admin, "/stats?filter=^http.http.downstream_rq_total$")
	n, _ := strings.CutPrefix(strings.TrimSpace(stat), "http.http.downstream_rq_total: ")
	count, err := strconv.Atoi(n)
	Expect(err).NotTo(HaveOccurred(), stat)
	return count
}

// startPostgres runs a Postgres with the empty database "gatehouse" until the
// end of the spec.
func startPostgres() *postgres.Server {
	GinkgoHelper()
	s, err := postgres.Start(limit(), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.Stop)
	Expect(s.CreateDatabase(limit(), "gatehouse")).To(Succeed())
	return s
}
