package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// trouble is an upstream that does not work.
type trouble struct {
	name string
	// fields are the fields of the upstream except its name.
	fields []string
	// health and words are what the own Envoy's report says; elsewhere is what load
	// reports say.
	health, words, elsewhere string
	// early says that this is known without a request.
	early bool
}

// closing accepts connections and closes them after the first bytes; with hold it keeps
// them open instead, and sends nothing.
func closing(hold bool) *net.TCPAddr {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(l.Close)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 1)); err == nil && hold {
					_, _ = io.Copy(io.Discard, conn)
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr)
}

// troubles returns the broken upstreams of a newcomer.
func troubles() []trouble {
	GinkgoHelper()
	at := func(port int, more ...string) []string {
		return append([]string{"Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(port), "Upstream_connect_timeoutseconds=1"}, more...)
	}
	checked := func(path string) []string {
		return []string{"Upstream_hc_path=" + path, "Upstream_hc_intervalseconds=1", "Upstream_hc_timeoutseconds=1"}
	}
	plain, secure, sick := backend("plain"), backendWith("secure", testkit.BackendOptions{Protocol: "tls"}), backend("sick")
	sick.SetHealthy(false)
	unconnected := "failing: no connection, for a reason that load reports do not show; "
	unanswered := "failing: requests get a 5xx answer or none, load reports do not show which; "
	return []trouble{
		{"closed", at(freePort()), "failing", "connection refused", unconnected, false},
		{"tlstoplain", at(plain.Port, "Upstream_protocol=tls"), "failing", "the port does not speak TLS", unconnected, false},
		{"plaintotls", at(closing(false).Port), "failing", "closed without an answer in HTTP/1.1; the port may speak TLS", unanswered, false},
		{"h2c", at(plain.Port, "Upstream_protocol=h2c"), "failing", "protocol error: what answers is not HTTP/2; the port may speak HTTP/1.1", unanswered, false},
		{"untrusted", at(secure.Port, "Upstream_protocol=tls", "Upstream_validation_cacertificate=other"), "failing", "its certificate is self-signed", unconnected, false},
		{"noname", []string{"Upstream_ip=nosuch.invalid", "Upstream_port=80"}, "unresolved", "the name does not resolve", "not_checked: ", true},
		{"silent", at(closing(true).Port), "failing", "timeout: requests are not answered in time", unanswered, false},
		{"sick", at(sick.Port, checked(testkit.HealthPath)...), "unhealthy", "its health check is answered with a status other than 200", "not_known: ", true},
		{"closedchecked", at(freePort(), checked("/")...), "unhealthy", "its health check does not connect", "not_known: ", true},
	}
}

// breakAll creates a service for each, with a host of its name.
func breakAll(api testkit.API, list []trouble) {
	GinkgoHelper()
	post(api, "/secret", "Secret_name=other", "Secret_cert="+otherAuthority())
	post(api, "/proxy", "Name=gw")
	for _, t := range list {
		post(api, "/upstream", append([]string{"Upstream_name=" + t.name}, t.fields...)...)
		post(api, "/service", "Service_Name="+t.name, "fqdn="+t.name+".test")
		addRoute(api, t.name, "root", "/", `{"timeouts":{"request":"1s"}}`, t.name)
		post(api, "/proxy/gw/service/"+t.name)
	}
}

// saidOf returns what explain says about the only upstream of a host.
func saidOf(api testkit.API, host string) string {
	GinkgoHelper()
	var answer struct {
		Data struct {
			List []explain.Answer `json:"core_db_explain"`
		}
	}
	Expect(json.Unmarshal([]byte(read(api, "/proxy/gw/explain?url=http://"+host+"/")), &answer)).To(Succeed())
	Expect(answer.Data.List).To(HaveLen(1))
	a := answer.Data.List[0]
	if a.Forward == nil {
		return ""
	}
	e := a.Forward.Clusters[0].Endpoints[0]
	if e.Health.Bad() {
		Expect(a.Message).To(ContainSubstring(e.HealthMessage))
	}
	return fmt.Sprintf("%s: %s", e.Health, e.HealthMessage)
}

var _ = Describe("A broken upstream", func() {
	It("has its cause in one call, if the Envoy is the gateway's own", func() {
		_, gw := standalone("--access-log", "off")
		list := troubles()
		breakAll(gw.api, list)
		for _, t := range list {
			By(t.name)
			host := t.name + ".test"
			want := And(HavePrefix(t.health+": "), ContainSubstring(t.words))
			if t.early {
				Eventually(saidOf).WithArguments(gw.api, host).Should(want)
			} else {
				Eventually(saidOf).WithArguments(gw.api, host).Should(HavePrefix("not_checked: not checked: "))
			}
			Eventually(gw.answers).WithArguments(host, "/").ShouldNot(Equal("404"))
			Expect(saidOf(gw.api, host)).To(want)
			Expect(read(gw.api, "/upstream/"+t.name)).To(And(ContainSubstring(`"code":"Failing","status":true,"message":"`), ContainSubstring(t.words)))
			Expect(read(gw.api, "/status")).To(ContainSubstring(`"object":"/upstream/` + t.name + `"`))
		}
	})

	It("has what is known, if the Envoy is elsewhere", func() {
		g := serve()
		list := troubles()
		breakAll(g.API, list)
		port := freePort()
		a, err := g.API.Do(limit(), "PATCH", "/proxy/gw", "application/json", fmt.Sprintf(`{"http_port":%d,"listen_ip":"127.0.0.1"}`, port))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(200), a.Body)
		envoyFor("gw", g.XDSAddr)
		gw := gateway{g.API, port}
		for _, t := range list {
			Eventually(gw.answers).WithArguments(t.name+".test", "/").ShouldNot(Or(Equal("404"), ContainSubstring("refused")))
		}
		for _, t := range list {
			By(t.name)
			Eventually(func() string {
				gw.get(t.name+".test", "/")
				return saidOf(g.API, t.name+".test")
			}).Should(HavePrefix(t.elsewhere))
		}
		Expect(read(g.API, "/status")).To(And(
			ContainSubstring(`"object":"/upstream/closed"`), ContainSubstring(`"health_reason":"not_connected"`), Not(ContainSubstring(`"object":"/upstream/sick"`))))
	})

	It("is healthy again when its requests succeed", func() {
		_, gw, blue := shop("--access-log", "off")
		said := func() string {
			_, err := gw.send(http.MethodGet, "shop.example", "/")
			Expect(err).NotTo(HaveOccurred())
			return saidOf(gw.api, "shop.example")
		}
		Eventually(said).Should(MatchRegexp(`^answering: \d+ of its last \d+ requests? succeeded$`))
		blue.Kill()
		Eventually(said).Should(ContainSubstring("connection refused"))
		Expect(blue.Restart()).To(Succeed())
		Eventually(said).Should(MatchRegexp(`^answering: (\d+) of its last (\d+) requests? succeeded$`))
	})

	It("is reported by the write that waits for the Envoys", func() {
		g, gw := standalone("--access-log", "off")
		list := troubles()
		breakAll(gw.api, list)
		for _, t := range list {
			if !t.early {
				continue
			}
			a, err := gw.api.Do(limit(), "PATCH", "/upstream/"+t.name+"?wait=applied", "application/json", `{"upstream_weight":7}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Header.Values("Gatehouse-Warning")).To(ConsistOf(And(
				HavePrefix(fmt.Sprintf("upstream %q (", t.name)), ContainSubstring(" is "+t.health+` in proxy "gw": `), ContainSubstring(t.words))))
		}
		By("gatehouse apply --wait, of a document that is about one of them")
		file := filepath.Join(GinkgoT().TempDir(), "doc.yaml")
		Expect(os.WriteFile(file, []byte("version: 1\nupstreams: [{upstream_name: noname, upstream_ip: nosuch.invalid, upstream_port: 80, upstream_weight: 9}]\n"), 0o600)).To(Succeed())
		code, _, stderr := cliOf(g).run("apply", "-f", file, "--wait")
		Expect(code).To(BeZero(), stderr)
		Expect(stderr).To(Equal("warning: upstream \"noname\" (nosuch.invalid:80) is unresolved in proxy \"gw\": the name does not resolve to an address\n"))
	})
})
