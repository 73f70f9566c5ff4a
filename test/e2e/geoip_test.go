package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// The addresses of the databases of these specs. An address in none of them is unknown.
const (
	german   = "192.0.2.7"
	austrian = "198.51.100.7"
	nowhere  = "203.0.113.7"
)

// countries writes a database in which the addresses have their countries, and returns its path.
func countries() string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "country.mmdb")
	writeCountries(path, "DE", "AT")
	return path
}

func writeCountries(path, first, second string) {
	GinkgoHelper()
	Expect(testkit.WriteCountries(path, map[string]string{"192.0.2.0/24": first, "198.51.100.0/24": second})).To(Succeed())
}

func networks() string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "asn.mmdb")
	Expect(testkit.WriteNetworks(path, map[string]uint32{"192.0.2.0/24": 64500, "198.51.100.0/24": 64501})).To(Succeed())
	return path
}

// located runs "gatehouse envoy" with databases, until the end of the spec.
func located(xdsAddr string, more ...string) *commanded {
	GinkgoHelper()
	socket := filepath.Join(GinkgoT().TempDir(), "admin.sock")
	p, err := testkit.SpawnGatehouse([]string{"TMPDIR=" + GinkgoT().TempDir()},
		append([]string{"envoy", "--proxy", "gw", "--xds-addr", xdsAddr, "--admin-socket", socket}, more...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill)
	e := &commanded{p, testkit.API{URL: "http://envoy", Socket: socket}}
	Eventually(e.state).Should(Equal("LIVE"))
	return e
}

// access sets the lists of the shop.
func (g gateway) access(config string) {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{"filter_type": "vh_filter_ipaccess", "filter_config": json.RawMessage(config)})
	Expect(err).NotTo(HaveOccurred())
	a, err := g.api.Do(limit(), http.MethodPut, "/filter/lists?wait=applied&timeout=20s", "application/json", string(body))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

// from returns the statuses for requests of addresses.
func (g gateway) from(addresses ...string) (list []int) {
	GinkgoHelper()
	for _, address := range addresses {
		list = append(list, g.get("shop.example", "/", "X-Forwarded-For: "+address).Status)
	}
	return list
}

// behindBalancer runs a control plane with the shop on a proxy behind a load balancer.
func behindBalancer() (g *testkit.Gatehouse, gw gateway) {
	GinkgoHelper()
	g = serve()
	gw = gateway{g.API, freePort()}
	specificationCalls(through(g.API), backend("blue"), "Http_port="+strconv.Itoa(gw.port), "Listen_ip=127.0.0.1", "Trusted_hops=1")
	return g, gw
}

var _ = Describe("Countries and networks of clients", func() {
	It("are checked by an Envoy that has databases, and one that has none refuses unless it is told otherwise", func() {
		g, gw := behindBalancer()
		bare := gateway{g.API, freePort()}
		post(g.API, "/proxy", "Name=bare", "Http_port="+strconv.Itoa(bare.port), "Listen_ip=127.0.0.1", "Trusted_hops=1")
		post(g.API, "/proxy/bare/service/shop")
		e := located(g.XDSAddr, "--geoip-country", countries(), "--geoip-asn", networks())
		other := envoyFor("bare", g.XDSAddr)
		gw.access(`{"allow_countries": ["de"]}`)
		post(g.API, "/service/shop/filter/lists?wait=applied")
		for _, c := range []struct {
			lists        string
			with, withno []int
		}{
			{`{"allow_countries": ["de"]}`, []int{200, 403, 403}, []int{403, 403, 403}},
			{`{"allow_countries": ["DE"], "unknown": "allow"}`, []int{200, 403, 200}, []int{403, 403, 403}},
			{`{"deny_countries": ["DE"]}`, []int{403, 200, 200}, []int{403, 403, 403}},
			{`{"deny_countries": ["DE"], "unknown": "refuse", "no_database": "allow"}`, []int{403, 200, 403}, []int{200, 200, 200}},
			{`{"allow_asns": [64501]}`, []int{403, 200, 403}, []int{403, 403, 403}},
			{`{"deny_asns": [64501], "unknown": "refuse", "allow": ["203.0.113.0/24", "192.0.2.0/24"]}`, []int{200, 403, 200}, []int{200, 403, 200}},
			{`{"allow_countries": ["DE"], "allow": ["203.0.113.0/24"]}`, []int{200, 403, 200}, []int{403, 403, 200}},
			{`{"allow_countries": ["DE", "AT"], "deny": ["192.0.2.7"]}`, []int{403, 200, 403}, []int{403, 403, 403}},
			{`{"allow_countries": ["DE", "AT"], "deny_asns": [64500], "no_database": "allow"}`, []int{403, 200, 403}, []int{200, 200, 200}},
			{`{"allow": ["198.51.100.7"], "deny_countries": ["AT"]}`, []int{403, 403, 403}, []int{403, 200, 403}},
			{`{"allow_countries": ["DE"], "allow_asns": [64501]}`, []int{200, 200, 403}, []int{403, 403, 403}},
		} {
			By(c.lists)
			gw.access(c.lists)
			Eventually(gw.from).WithArguments(german, austrian, nowhere).Should(Equal(c.with), "with databases")
			Eventually(bare.from).WithArguments(german, austrian, nowhere).Should(Equal(c.withno), "without")
		}
		Expect(read(g.API, "/proxy/bare")).To(ContainSubstring("a vh_filter_ipaccess names countries, and the Envoys at 127.0.0.1:"))
		Expect(read(g.API, "/proxy/gw")).NotTo(ContainSubstring("NoDatabase"))
		By("headers that a client forges")
		gw.access(`{"allow_countries": ["DE"], "allow": ["198.51.100.0/24"]}`)
		for _, g := range []gateway{gw, bare} {
			Eventually(g.from).WithArguments(austrian, nowhere).Should(Equal([]int{200, 403}))
			for _, h := range []string{"X-Gatehouse-Country: DE", "x-gatehouse-asn: 64500"} {
				Expect(g.get("shop.example", "/", "X-Forwarded-For: "+nowhere, h).Status).To(Equal(403), h)
			}
		}
		Expect(gw.get("shop.example", "/", "X-Forwarded-For: "+austrian, "X-Gatehouse-Country: DE").Echo.Headers).
			NotTo(HaveKey("X-Gatehouse-Country"))
		Expect(read(g.API, "/proxy/gw/explain?"+fields("url=http://shop.test/", "address="+german).Encode())).To(ContainSubstring(
			"whether it allows 192.0.2.7 depends on the country of 192.0.2.7, which is compared with DE; the Envoy looks it up, and this control plane does not know it"))
		Expect(read(g.API, "/proxy/bare/explain?"+fields("url=http://shop.test/", "address="+german).Encode())).To(And(
			ContainSubstring(`"code":"address_refused"`), ContainSubstring("needs a database of countries, which the Envoy does not have")))
		Expect(e.state()).To(Equal("LIVE"))
		Expect(read(other.Admin, "/ready")).To(ContainSubstring("LIVE"))
	})

	It("are told to backends in headers that no client can set", func() {
		g, gw := behindBalancer()
		bare := gateway{g.API, freePort()}
		post(g.API, "/proxy", "Name=bare", "Http_port="+strconv.Itoa(bare.port), "Listen_ip=127.0.0.1", "Trusted_hops=1")
		post(g.API, "/proxy/bare/service/shop")
		located(g.XDSAddr, "--geoip-country", countries(), "--geoip-asn", networks())
		envoyFor("bare", g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		bare.expect("shop.example", "/", "blue")
		told := func(g gateway, address string) string {
			h := g.get("shop.example", "/", "X-Forwarded-For: "+address, "X-Country-Code: FR", "x-country-code: IT", "X-Asn: 1",
				"X-Gatehouse-Asn: 2").Echo.Headers
			return strings.Join(append(h["X-Country-Code"], h["X-Asn"]...), " ")
		}
		set := func(config string) {
			a, err := g.API.Do(limit(), http.MethodPut, "/globalconfig/where?wait=applied&timeout=20s", "application/json",
				`{"globalconfig_type": "globalconfig_geoip", "config": `+config+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
		}
		Expect(told(gw, german)).To(Equal("FR IT 1"), "without the global config they are any headers")
		set(`{"country_header": "X-Country-Code", "asn_header": "X-ASN"}`)
		Eventually(told).WithArguments(gw, german).Should(Equal("DE 64500"))
		Eventually(told).WithArguments(bare, german).Should(BeEmpty())
		Expect(told(gw, nowhere)).To(BeEmpty())
		By("lists beside the headers")
		gw.access(`{"allow_countries": ["DE"], "deny_asns": [64501]}`)
		post(g.API, "/service/shop/filter/lists?wait=applied")
		Eventually(gw.from).WithArguments(german, austrian, nowhere).Should(Equal([]int{200, 403, 403}))
		Expect(told(gw, german)).To(Equal("DE 64500"))
		By("one header only")
		set(`{"asn_header": "X-ASN"}`)
		Eventually(told).WithArguments(gw, german).Should(Equal("FR IT 64500"))
		Expect(gw.get("shop.example", "/", "X-Forwarded-For: "+german).Echo.Headers).NotTo(HaveKey("X-Gatehouse-Country"))
		Expect(gw.from(german, austrian, nowhere)).To(Equal([]int{200, 403, 403}))
	})

	It("are known to explain, where the control plane has the database", func() {
		g, gw, _ := shop("--geoip-country", countries(), "--trusted-hops", "1")
		gw.access(`{"allow_countries": ["DE"], "allow": ["127.0.0.1"]}`)
		post(g.API, "/service/shop/filter/lists?wait=applied")
		Eventually(gw.from).WithArguments(german, austrian, nowhere).Should(Equal([]int{200, 403, 403}))
		for address, says := range map[string]string{
			german: "allows 192.0.2.7: it has country DE", austrian: "does not allow 198.51.100.7: it has country AT",
			nowhere: "does not allow 203.0.113.7: it has no known country", "127.0.0.1": "allows 127.0.0.1",
		} {
			Expect(read(g.API, "/proxy/gw/explain?"+fields("url=http://shop.test/", "address="+address).Encode())).To(ContainSubstring(says))
		}
	})

	It("follow the file of the operator, unless it is bad, and no request fails", func() {
		g, gw := behindBalancer()
		file := countries()
		e := located(g.XDSAddr, "--geoip-country", file)
		gw.access(`{"allow_countries": ["DE"], "allow": ["127.0.0.0/8"]}`)
		post(g.API, "/service/shop/filter/lists?wait=applied")
		Eventually(gw.from).WithArguments(german, austrian).Should(Equal([]int{200, 403}))
		_, stop := gw.traffic("shop.example", 100)
		writeCountries(file, "AT", "DE")
		Eventually(gw.from).WithTimeout(10*time.Second).WithArguments(german, austrian).Should(Equal([]int{403, 200}))
		By("junk, and a file that is cut off")
		good, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for i, content := range []string{"junk", string(good[:len(good)/2]), string(good[len(good)/2:])} {
			Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
			Eventually(func() int { return strings.Count(e.Stderr.String(), "the new file is not used") }).Should(Equal(i + 1))
		}
		By("no file, and a new listener")
		Expect(os.Remove(file)).To(Succeed())
		Eventually(func() int { return strings.Count(e.Stderr.String(), "the new file is not used") }).Should(Equal(4))
		a, err := g.API.Do(limit(), http.MethodPut, "/globalconfig/log?wait=applied&timeout=20s", "application/json",
			`{"globalconfig_type": "globalconfig_accesslog", "config": {"omit": ["path"]}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		Expect(gw.from(german, austrian)).To(Equal([]int{403, 200}))
		By("a good file again")
		writeCountries(file, "DE", "AT")
		Eventually(gw.from).WithTimeout(10*time.Second).WithArguments(german, austrian).Should(Equal([]int{200, 403}))
		stop()
		Expect(e.state()).To(Equal("LIVE"))
		Expect(e.Stop(limit())).To(BeZero())
	})

	It("are unknown to an Envoy whose file is bad when it starts", func() {
		g, gw := behindBalancer()
		gw.access(`{"allow_countries": ["DE"]}`)
		post(g.API, "/service/shop/filter/lists")
		file := filepath.Join(GinkgoT().TempDir(), "country.mmdb")
		e := located(g.XDSAddr, "--geoip-country", file)
		Eventually(gw.from).WithArguments(german, austrian).Should(Equal([]int{403, 403}))
		Expect(e.Stderr.String()).To(ContainSubstring("a database is not used, and the control plane is told that this envoy has none"))
		Eventually(func() string { return read(g.API, "/proxy/gw") }).Should(ContainSubstring(`"NoDatabase"`))
		gw.access(`{"allow_countries": ["DE"], "no_database": "allow"}`)
		Eventually(gw.from).WithArguments(german, austrian).Should(Equal([]int{200, 200}))
		writeCountries(file, "DE", "AT")
		Eventually(e.Stderr.String).Should(ContainSubstring("restart to use it"))
		Expect(e.Stop(limit())).To(BeZero())
		again := located(g.XDSAddr, "--geoip-country", file)
		Eventually(gw.from).WithArguments(german, austrian).Should(Equal([]int{200, 403}))
		Eventually(func() string { return read(g.API, "/proxy/gw") }).ShouldNot(ContainSubstring("NoDatabase"))
		Expect(again.Stop(limit())).To(BeZero())
	})
})
