package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// followedEnvoy runs an Envoy whose bootstrap watches the files in a directory, which has its certificate.
func (k *keyring) followedEnvoy(proxy, xdsAddr string) (dir string, e *testkit.Envoy) {
	GinkgoHelper()
	dir, sds := GinkgoT().TempDir(), GinkgoT().TempDir()
	k.handOut(dir, k.proxy(proxy))
	bootstrap, err := testkit.PrintBootstrap(limit(), proxy, xdsAddr, "--admin-socket", filepath.Join(dir, "admin.sock"), "--sds-dir", sds,
		"--xds-tls-ca", filepath.Join(dir, "ca.crt"), "--xds-tls-cert", filepath.Join(dir, "tls.crt"), "--xds-tls-key", filepath.Join(dir, "tls.key"))
	Expect(err).NotTo(HaveOccurred())
	Expect(bootstrap).To(ContainSubstring(sds))
	e, err = testkit.RunEnvoy(limit(), dir, bootstrap)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return dir, e
}

// handOut moves a certificate into the directory of an Envoy.
func (k *keyring) handOut(dir string, p testkit.Pair) {
	GinkgoHelper()
	for name, content := range map[string]string{"ca.crt": k.server.PEM, "tls.crt": p.Cert, "tls.key": p.Key} {
		writeFile(filepath.Join(dir, name), content, true)
	}
}

// fleet returns clients with a certificate each, connected at the same time.
func (k *keyring) fleet(size int, addr, proxy string) []*testkit.XDSClient {
	GinkgoHelper()
	clients := make([]*testkit.XDSClient, size)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			defer GinkgoRecover()
			clients[i] = k.dial(addr, proxy, k.proxy(proxy))
		})
	}
	all.Wait()
	return clients
}

// streams is how many of them are open while certificates are renewed.
func streams() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_STREAMS")); err == nil {
		return n
	}
	return 200
}

// lost counts the clients whose stream has ended.
func lost(clients []*testkit.XDSClient) (n int) {
	for _, x := range clients {
		if x.Err() != nil {
			n++
		}
	}
	return n
}

// expectCluster waits until each client has a cluster.
func expectCluster(clients []*testkit.XDSClient, part string) {
	GinkgoHelper()
	for i, x := range clients {
		Expect(x.Wait(limit(), clusterTypeURL, func(have map[string]*discoveryv3.Resource) bool {
			for name := range have {
				if strings.Contains(name, part) {
					return true
				}
			}
			return false
		})).To(Succeed(), "client %d", i)
	}
}

var _ = Describe("Certificates of the xDS port that are renewed", func() {
	It("cost no stream that should live, and no request", func() {
		size := streams()
		k := newKeyring()
		g := serve(k.args("--access-log", "off")...)
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "*", "blue")
		var stops []func()
		var dirs []string
		names := []string{"edge", "inner"}
		gateways := map[string]gateway{}
		for _, name := range names {
			gateways[name] = gateway{g.API, freePort()}
			addProxy(g.API, name, gateways[name].port, "shop")
			dir, _ := k.followedEnvoy(name, g.XDSAddr)
			dirs = append(dirs, dir)
			gateways[name].expect("shop.example", "/", "blue")
			_, stop := gateways[name].traffic("shop.example", 100)
			stops = append(stops, stop)
		}
		old := k.fleet(size, g.XDSAddr, "edge")
		expectCluster(old, "blue")
		used := func(what string) {
			GinkgoHelper()
			Eventually(g.Records).WithArguments("new files of the xds port in use").Should(ContainElement(HaveKeyWithValue("what", what)))
		}

		By("the certificate of the port")
		k.renewServer()
		used("certificate")
		late := k.fleet(3, g.XDSAddr, "edge")

		By("a second authority of the Envoys")
		next := newAuthority("envoys, next")
		k.write("clients.crt", k.clients.PEM+next.PEM)
		used("client authorities")
		k.clients = next
		fresh := k.fleet(size, g.XDSAddr, "edge")
		expectCluster(fresh, "blue")
		for i, name := range names {
			k.handOut(dirs[i], k.proxy(name))
		}
		Expect(lost(old) + lost(late) + lost(fresh)).To(BeZero())

		By("removing the first authority, and with it the streams of its certificates")
		k.write("clients.crt", next.PEM)
		for i, x := range append(old, late...) {
			Eventually(x.Ended()).Should(BeClosed(), "client %d", i)
		}
		By("a change reaches all the others")
		addUpstream(g.API, backend("green"))
		addRoute(g.API, "shop", "green", "/green", "", "green")
		expectCluster(fresh, "green")
		for _, name := range names {
			gateways[name].expect("shop.example", "/green", "green")
		}
		Expect(lost(fresh)).To(BeZero())
		for _, stop := range stops {
			stop()
		}
		Eventually(func() string { return read(g.API, "/proxy/inner/status") }).Should(ContainSubstring("spiffe://gatehouse/proxy/inner"))
		lines := refusalsByReason(g)
		Expect(lines["ended"]).NotTo(BeEmpty())
		_, _ = fmt.Fprintf(GinkgoWriter, "%d streams ended with their authority, %d live\n", lost(old)+lost(late), len(fresh))
	})
})
