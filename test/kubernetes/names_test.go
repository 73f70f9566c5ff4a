package kubernetes_test

import (
	"fmt"
	"net"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// resolver runs a DNS server that knows these names until the end of the spec, and returns what makes an Envoy ask it: a
// part of its bootstrap.
func resolver(names map[string]string) string {
	GinkgoHelper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, client, err := conn.ReadFromUDP(buffer) // ends with conn.Close
			if err != nil {
				return
			}
			if answer := resolve(names, buffer[:n]); answer != nil {
				_, _ = conn.WriteToUDP(answer, client)
			}
		}
	}()
	DeferCleanup(func() {
		_ = conn.Close()
		<-done
	})
	return fmt.Sprintf(`typed_dns_resolver_config:
  name: envoy.network.dns_resolver.cares
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig
    resolvers: [{socket_address: {address: 127.0.0.1, port_value: %d}}]
`, conn.LocalAddr().(*net.UDPAddr).Port)
}

// resolve answers a question for the IPv4 address of a name; nil if it cannot be read.
func resolve(names map[string]string, question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	address, known := names[q.Name.String()]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	} else if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()},
		}}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}

var _ = Describe("A name outside the cluster", func() {
	It("leads where the resolver says, even to the gateway's machine, unless the allowed names are listed", func() {
		secret, err := testkit.StartBackend("secret", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(secret.Close)
		blue := backend("blue")
		dns := resolver(map[string]string{"outside.example.": blue.IP, "rebound.example.": "127.0.0.1"})
		p := newPlace(cluster)
		p.external("outside", "outside.example", blue.Port)
		p.leadTo("outside", blue.Port)
		p.external("rebound", "rebound.example", secret.Port)
		p.leadTo("rebound", secret.Port)
		envoy := func(g gateway) {
			bootstrap, err := testkit.PrintBootstrap(limit(), "gatehouse", g.XDSAddr, "--admin-addr", "127.0.0.1:0")
			Expect(err).NotTo(HaveOccurred())
			e, err := testkit.RunEnvoy(limit(), GinkgoT().TempDir(), dns+bootstrap)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(e.Kill)
		}

		g := p.serve()
		envoy(g)
		g.expect("outside.example", "200 blue")
		g.expect("rebound.example", "200 secret") // ADR 0088 says that nothing prevents it

		By("listing them")
		strict := p.serve("--upstream-allow", "outside.example")
		envoy(strict)
		strict.expect("outside.example", "200 blue")
		strict.expect("rebound.example", "503")
		Consistently(strict.request).WithArguments("rebound.example", "/").Should(Equal("503"))
	})
})
