package e2e_test

import (
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("HTTPS under handshakes while the control plane is away", func() {
	// plane runs a control plane and an Envoy of its own, with a certificate for
	// asked.test that the Envoy has, and one for known.test that it has not requested.
	// Answers to the Envoy may be delayed.
	plane := func(xds string, late time.Duration) (s *secured, admin testkit.API, again func(xds string)) {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		run := func(xds string) *testkit.Gatehouse {
			GinkgoHelper()
			return start(nil, "serve", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", xds, "--access-log", "off")
		}
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		g, port, https := run(xds), freePort(), freePort()
		s = &secured{gateway{g.API, port}, g, https, authority}
		addUpstream(g.API, backend("blue"))
		post(g.API, "/proxy", "Name=gw", "Http_port="+strconv.Itoa(port), "Https_port="+strconv.Itoa(https), "Listen_ip=127.0.0.1")
		link := g.XDSAddr
		if late > 0 {
			link = slowLink(link, late)
		}
		admin = envoyFor("gw", link).Admin
		s.serve("asked", "asked.test", "asked.test")
		s.serve("known", "known.test", "known.test")
		s.usual("asked.test", func() bool { return false })
		return s, admin, func(xds string) {
			GinkgoHelper()
			s.Gatehouse = run(xds)
			s.api = s.API
		}
	}

	It("serves the names that Envoy has, lets others wait, and keeps nothing of them once it is back", func() {
		s, admin, _ := plane("127.0.0.1:0", 0)
		secrets, memory := secretsOf(admin), []int{allocated(admin)}
		total := handshakes() / 10
		for range 2 { // one-time allocations are made before the second time
			before := s.usual("asked.test", func() bool { return false })
			Expect(s.Freeze()).To(Succeed())
			DeferCleanup(s.Thaw)
			var answered atomic.Int64
			var flood sync.WaitGroup
			began := time.Now()
			for i := range total {
				flood.Go(func() {
					if _, err := s.shake(fmt.Sprintf("r%d.example", i)); err != nil {
						answered.Add(1)
					}
				})
			}
			meanwhile := s.usual("asked.test", func() bool { return answered.Load() < int64(total) })
			flood.Wait()
			gaveUp := time.Since(began)
			most := secretsOf(admin)
			Expect(most).To(Equal(secrets + total))
			memory = append(memory, allocated(admin))

			By("one of those that wait is served once it is back")
			waiting := make(chan error, 1)
			go func() {
				conn, err := s.shake("known.test")
				if err == nil {
					err = conn.Close()
				}
				waiting <- err
			}()
			Eventually(secretsOf).WithArguments(admin).Should(BeNumerically(">=", most))
			Expect(s.Thaw()).To(Succeed())
			Expect(<-waiting).NotTo(HaveOccurred())
			secrets = 2
			Eventually(secretsOf).WithArguments(admin).Should(Equal(secrets))
			s.expectRefused("r0.example")
			memory = append(memory, allocated(admin))
			AddReportEntry("away", fmt.Sprintf("%d handshakes for unknown names gave up in %s; a name that Envoy has in %s before and %s meanwhile; "+
				"secrets %d meanwhile, %d after; memory %d", total, gaveUp, before, meanwhile, most, secretsOf(admin), memory))
		}
		Eventually(allocated).WithArguments(admin).Should(BeNumerically("<", memory[2]+(memory[3]-memory[2])/4))
	})

	It("applies a change to the next connection, even if the control plane is slow to reach", func() {
		s, _, _ := plane("127.0.0.1:0", 50*time.Millisecond)
		for range 3 {
			s.expectShown("asked.test", s.rotate("asked", testkit.CertificateOptions{Names: []string{"asked.test"}}))
			applied(s.api, "DELETE", "/service/asked/secret/asked")
			s.expectRefused("asked.test")
			applied(s.api, "POST", "/service/asked/secret/asked")
			s.usual("asked.test", func() bool { return false })
		}
	})

	It("learns what has changed, and what is gone, after a restart", func() {
		xds := "127.0.0.1:" + strconv.Itoa(freePort())
		s, admin, again := plane(xds, 0)
		s.serve("gone", "gone.test", "gone.test")
		s.serve("wide", "*.wide.test", "*.wide.test")
		for _, host := range []string{"gone.test", "known.test", "a.wide.test", "b.wide.test"} {
			s.usual(host, func() bool { return false })
		}
		Expect(secretsOf(admin)).To(Equal(5))
		Expect(s.Kill()).To(Succeed())
		s.usual("gone.test", func() bool { return false })

		By("changes that its Envoy cannot receive")
		again("127.0.0.1:0")
		options := testkit.CertificateOptions{Names: []string{"asked.test"}}
		pair, err := s.authority.Issue(options)
		Expect(err).NotTo(HaveOccurred())
		a, err := s.api.Do(limit(), "PATCH", "/secret/asked", formType, "Secret_cert="+url.QueryEscape(pair.Cert)+"&Secret_key="+url.QueryEscape(pair.Key))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(200), a.Body)
		remove(s.api, "/service/gone/secret/gone")
		own := s.issue("own", testkit.CertificateOptions{Names: []string{"b.wide.test"}})
		addService(s.api, "own", "b.wide.test", "blue")
		post(s.api, "/proxy/gw/service/own")
		post(s.api, "/service/own/secret/own")
		Expect(s.Stop(limit())).To(BeZero())

		again(xds)
		Eventually(func() error { _, err := s.handshake("gone.test", without); return err }).Should(MatchError(ContainSubstring("handshake failure")))
		s.expectShown("asked.test", pair)
		s.expectShown("b.wide.test", own)
		s.usual("a.wide.test", func() bool { return false })
		Eventually(secretsOf).WithArguments(admin).Should(Equal(4))
		s.expectShown("asked.test", s.rotate("asked", options))
	})
})
