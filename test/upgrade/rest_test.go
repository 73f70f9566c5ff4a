//go:build upgrade

package upgrade

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

const (
	yamlType = "application/yaml"
	jsonType = "application/json"
)

// site is what a control plane of the version before configures: a shop whose upstream changes, a part of it that
// wants an API key, allowed addresses, and an access log.
type site struct {
	gateway
	blue, green *testkit.Backend
	key         string
}

func newSite(api testkit.API) site {
	GinkgoHelper()
	s := site{gateway(freePort()), backend("blue", testkit.BackendOptions{}), backend("green", testkit.BackendOptions{}), ""}
	call(api, "PUT", "/config", yamlType, fmt.Sprintf(`
version: 1
upstreams:
- {upstream_name: shop, upstream_ip: %s, upstream_port: %d, upstream_hc_path: /}
keysets: [{keyset_name: partners}]
filters:
- {filter_name: keys, filter_type: http_filter_apikey, filter_config: {keys: partners}}
- {filter_name: office, filter_type: vh_filter_ipaccess, filter_config: {allow: [127.0.0.0/8]}}
globalconfigs: [{globalconfig_name: logs, globalconfig_type: globalconfig_accesslog, config: {rename: {duration_ms: latency}}}]
services:
- service_name: shop
  fqdn: "*"
  routes:
  - {route_name: root, route_prefix: /, upstreams: [shop], filters: [office]}
  - {route_name: partners, route_prefix: /partners, upstreams: [shop], filters: [keys]}
proxies:
- {name: gw, http_port: %d, listen_ip: 127.0.0.1, services: [shop]}
`, s.blue.IP, s.blue.Port, s.gateway))
	var made struct{ Data struct{ Key string } }
	Expect(json.Unmarshal([]byte(call(api, "POST", "/keyset/partners/key", jsonType, `{"key_name": "mobile"}`)), &made)).To(Succeed())
	s.key = made.Data.Key
	Expect(s.key).NotTo(BeEmpty())
	return s
}

// leads sends the shop to a backend, and waits until it answers.
func (s site) leads(api testkit.API, to *testkit.Backend) {
	GinkgoHelper()
	call(api, "PATCH", "/upstream/shop?wait=applied", jsonType, fmt.Sprintf(`{"upstream_port": %d}`, to.Port))
	s.serves(to)
}

// serves checks all that the site has.
func (s site) serves(from *testkit.Backend) {
	GinkgoHelper()
	s.expect(from.Name, "/")
	s.expect("401", "/partners")
	s.expect(from.Name, "/partners", "X-Api-Key: "+s.key)
}

var _ = Describe("An update from the version before", func() {
	It("loses no request with SQLite, keeps what is stored, and leads back by a backup", func() {
		dir := GinkgoT().TempDir()
		args := []string{"--data-dir", dir, "--api-addr", "127.0.0.1:" + strconv.Itoa(freePort()), "--xds-addr", "127.0.0.1:" + strconv.Itoa(freePort())}
		serve := append([]string{"serve"}, args...)
		g := previous.start(serve...)
		s := newSite(g.API)
		envoy("gw", g.XDSAddr)
		s.serves(s.blue)
		stopTraffic := s.traffic()
		before := call(g.API, "GET", "/config", "", "")
		backup := filepath.Join(GinkgoT().TempDir(), "before.db")
		code, output := previous.run("backup", "--data-dir", dir, backup)
		Expect(code).To(BeZero(), output)

		By("the update")
		stop(g)
		g = current.start(serve...)
		Expect(call(g.API, "PUT", "/config?dry_run=true&prune=true", yamlType, before)).To(ContainSubstring(`"created":0,"updated":0,"deleted":0,`))
		s.leads(g.API, s.green)
		s.leads(g.API, s.blue)
		port := freePort()
		call(g.API, "PUT", "/config", yamlType, fmt.Sprintf(`
version: 1
services: [{service_name: raw, fqdn: "*", mode: tcp, port: %d, routes: [{route_name: all, route_prefix: /, upstreams: [shop]}]}]
proxies: [{name: gw, services: [shop, raw]}]
`, port))
		gateway(port).expect("blue", "/")
		s.leads(g.API, s.green)

		By("the way back")
		stop(g)
		Expect(previous.refuses(serve...)).To(MatchRegexp(`^gatehouse: the database has version \d+ of the schema, and this program knows versions up to 16 ` +
			`\(a newer gatehouse has migrated it: run that version, or restore the backup from before the update, see docs/operations\.md\)$`))
		code, output = previous.run("restore", "--data-dir", dir, backup)
		Expect(code).To(BeZero(), output)
		g = previous.start(serve...)
		s.serves(s.blue)
		s.leads(g.API, s.green)
		stopTraffic()
	})

	It("loses no request with several control planes on one PostgreSQL, one after the other", func() {
		server, err := postgres.Start(limit(), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		Expect(server.CreateDatabase(limit(), "gatehouse")).To(Succeed())
		dir, addrs := GinkgoT().TempDir(), []string{fmt.Sprintf("127.0.0.1:%d", freePort()), fmt.Sprintf("127.0.0.1:%d", freePort())}
		on := func(xds string) []string {
			return []string{"serve", "--database-url", server.URL("gatehouse"), "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", xds}
		}
		a, b := previous.start(on(addrs[0])...), previous.start(on(addrs[1])...)
		s := newSite(a.API)
		balancer, err := testkit.StartBalancer(addrs...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(balancer.Close)
		envoy("gw", balancer.Addr)
		s.serves(s.blue)
		stopTraffic := s.traffic()

		By("one of each version")
		stop(a)
		a = current.start(on(addrs[0])...)
		for range 3 {
			s.leads(a.API, s.green)
			s.leads(b.API, s.blue)
		}

		By("only the new one")
		stop(b)
		b = current.start(on(addrs[1])...)
		s.leads(b.API, s.green)
		s.leads(a.API, s.blue)
		Expect(previous.refuses(on("127.0.0.1:0")...)).To(ContainSubstring("a newer gatehouse has migrated it"))
		s.leads(b.API, s.green)
		stopTraffic()
	})
})
