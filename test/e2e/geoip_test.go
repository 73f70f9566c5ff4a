package e2e_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"

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

var _ = Describe("Countries and networks of clients", func() {
	It("are checked by an Envoy that has a database", func() {
		g := serve()
		gw := gateway{g.API, freePort()}
		specificationCalls(through(g.API), backend("blue"), "Http_port="+strconv.Itoa(gw.port), "Listen_ip=127.0.0.1", "Trusted_hops=1")
		located(g.XDSAddr, "--geoip-country", countries(), "--geoip-asn", networks())
		gw.access(`{"allow_countries": ["de"]}`)
		post(g.API, "/service/shop/filter/lists?wait=applied")
		Eventually(gw.from).WithArguments(german, austrian, nowhere).Should(Equal([]int{200, 403, 403}))
	})
})
