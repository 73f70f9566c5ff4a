package e2e_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// make soak makes more changes.
var _ = DescribeTable("No connection of a service is lost while its upstreams and other services change", func(mode string) {
	s, _ := secure()
	var secret *tls.Config
	var client *tls.Config
	host := "*"
	if mode == "tls" {
		host = "red.test"
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{host}})
		Expect(err).NotTo(HaveOccurred())
		cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
		Expect(err).NotTo(HaveOccurred())
		secret = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		client = &tls.Config{ServerName: host, RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
	}
	addTalker(s.api, talk("red", secret))
	addTalker(s.api, talk("green", secret))
	port, other := freePort(), freePort()
	if mode == "tls" {
		port, other = s.httpsPort, 0
		addL4(s.api, "red", mode, 0, host, "red")
		addL4(s.api, "other", mode, other, "other.test", "green")
	} else {
		addL4(s.api, "red", mode, port, host, "red")
		addL4(s.api, "other", mode, other, host, "green")
	}
	Eventually(func() string { return who(port, client) }).Should(Equal("red"))
	people := gather(func() (*talking, string, error) { return hear(port, client) })
	for i := range changes() / 10 {
		switch i % 4 {
		case 0:
			applied(s.api, http.MethodPost, "/service/red/route/root/upstream/green")
		case 1:
			applied(s.api, http.MethodDelete, "/proxy/gw/service/other")
		case 2:
			applied(s.api, http.MethodDelete, "/service/red/route/root/upstream/green")
		case 3:
			applied(s.api, http.MethodPost, "/proxy/gw/service/other")
		}
	}
	people.expectNone()
},
	Entry("tcp", "tcp"),
	Entry("tls", "tls"),
)

var _ = It("No datagram of a session is lost while other services change", func() {
	_, gw := standalone()
	post(gw.api, "/proxy", "Name=gw")
	addTalker(gw.api, echoDatagrams("red "))
	port, other := freeDatagramPort(), freeDatagramPort()
	addL4(gw.api, "red", "udp", port, "*", "red")
	addL4(gw.api, "other", "udp", other, "*", "red")
	client := datagrams(port)
	Eventually(func() string { return client.ask("ready") }).Should(Equal("red ready"))
	stop, lost := make(chan struct{}), []string{}
	var asked sync.WaitGroup
	asked.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if got := client.ask(strconv.Itoa(n)); got != fmt.Sprint("red ", n) {
				lost = append(lost, got)
				return
			}
		}
	})
	for i := range changes() / 10 {
		applied(gw.api, map[bool]string{true: http.MethodDelete, false: http.MethodPost}[i%2 == 0], "/proxy/gw/service/other")
	}
	close(stop)
	asked.Wait()
	Expect(lost).To(BeEmpty())
})
