package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// tlsHosts is how many hosts have a certificate: GATEHOUSE_TEST_TLS_HOSTS, or a number
// that suits a run with the other tests.
func tlsHosts() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_TLS_HOSTS")); err == nil {
		return n
	}
	return 40
}

// populate creates hosts h0.test, h1.test and so on, each with a certificate.
func (s secured) populate(hosts int) {
	GinkgoHelper()
	var secrets, services []map[string]any
	var names []string
	for i := range hosts {
		name := fmt.Sprintf("h%d", i)
		names = append(names, name)
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{name + ".test"}})
		Expect(err).NotTo(HaveOccurred())
		secrets = append(secrets, map[string]any{"secret_name": name, "secret_cert": pair.Cert, "secret_key": pair.Key})
		services = append(services, map[string]any{
			"service_name": name, "fqdn": name + ".test", "secrets": []string{name},
			"routes": []map[string]any{{"route_name": "root", "route_prefix": "/", "upstreams": []string{"blue"}}},
		})
	}
	text, err := json.Marshal(map[string]any{
		"version": 1, "secrets": secrets, "services": services, "proxies": []map[string]any{{"name": "gw", "services": names}},
	})
	Expect(err).NotTo(HaveOccurred())
	a, err := s.api.Do(limit(), http.MethodPut, "/config?wait=applied", "application/json", string(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}

// answersTo returns the status of an answer over HTTPS; 0 means that there was none.
func (s secured) answersTo(host string) int {
	conn, err := s.shake(host)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

var _ = Describe("HTTPS under requests for many hosts", func() {
	It("adds a host nearly as fast as with plain HTTP, and drops no connection", func() {
		s, _ := secure("--access-log", "off")
		s.populate(tlsHosts())
		var n atomic.Int64
		stop := s.secureTraffic(200, func() testkit.Target {
			return testkit.Target{Host: fmt.Sprintf("h%d.test", n.Add(1)/20%int64(tlsHosts())), Path: "/"}
		})
		open := s.openOnes("h0.test")
		open.expectOpen()
		before := listenerChanges(adminOf(s.Gatehouse))

		var plain, secure []time.Duration
		for i := range 11 {
			name := fmt.Sprintf("plain%d", i)
			began := time.Now()
			addService(s.api, name, name+".test", "blue")
			post(s.api, "/proxy/gw/service/"+name)
			s.expect(name+".test", "/", "blue")
			plain = append(plain, time.Since(began))

			name = fmt.Sprintf("secure%d", i)
			pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{name + ".test"}})
			Expect(err).NotTo(HaveOccurred())
			began = time.Now()
			addService(s.api, name, name+".test", "blue")
			post(s.api, "/secret", "Secret_name="+name, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
			post(s.api, "/service/"+name+"/secret/"+name)
			post(s.api, "/proxy/gw/service/"+name)
			Eventually(s.answersTo).WithArguments(name + ".test").Should(Equal(http.StatusOK))
			secure = append(secure, time.Since(began))
			s.expectShown(name+".test", pair)
		}
		AddReportEntry("live", fmt.Sprintf("beside %d hosts with certificates, a plain one in %s, one with a certificate in %s (medians of %d)",
			tlsHosts(), median(plain), median(secure), len(plain)))
		Expect(median(secure)).To(BeNumerically("<", 3*median(plain)))
		open.expectOpen()
		stop()
		Expect(listenerChanges(adminOf(s.Gatehouse))).To(Equal(before))
	})
})
