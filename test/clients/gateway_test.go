package clients_test

import (
	"context"
	"encoding/json"
	"net"
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

// secured is a gateway with HTTPS, and the authority of its certificates.
type secured struct {
	*testkit.Gatehouse
	addr      string // of HTTPS
	authority *testkit.Authority
	blue      *testkit.Backend
}

// secure runs a gateway with these services, each in front of blue:
//
//	ec.test, rsa.test   an ECDSA and an RSA certificate
//	both.test           one of each
//	*.wild.test         a wildcard certificate, ECDSA
//	bank.test           asks clients for a certificate of the authority
func secure(ctx context.Context, proxy ...string) secured {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	httpsPort, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	s := secured{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(httpsPort))}
	s.authority, err = testkit.NewAuthority("clients")
	Expect(err).NotTo(HaveOccurred())
	s.blue, err = testkit.StartBackend("blue", testkit.BackendOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.blue.Close)
	s.Gatehouse, err = testkit.StartGatehouse(ctx, nil, "standalone", "--data-dir", GinkgoT().TempDir(),
		"--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--http-port", strconv.Itoa(port), "--https-port", strconv.Itoa(httpsPort))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(s.Stop(ctx)).To(BeZero(), s.Stderr.String())
	}, NodeTimeout(time.Minute))
	Expect(s.WaitReady(ctx)).To(Succeed())

	s.post(ctx, "/upstream", "Upstream_name=blue", "Upstream_ip="+s.blue.IP, "Upstream_port="+strconv.Itoa(s.blue.Port))
	s.post(ctx, "/proxy", append([]string{"Name=gw"}, proxy...)...)
	s.post(ctx, "/secret", "Secret_name=clients", "Secret_cert="+s.authority.PEM)
	s.serve(ctx, "ec", "ec.test", testkit.CertificateOptions{Names: []string{"ec.test"}})
	s.serve(ctx, "rsa", "rsa.test", testkit.CertificateOptions{Names: []string{"rsa.test"}, RSA: true})
	s.serve(ctx, "both", "both.test", testkit.CertificateOptions{Names: []string{"both.test"}},
		testkit.CertificateOptions{Names: []string{"both.test"}, RSA: true})
	s.serve(ctx, "wild", "*.wild.test", testkit.CertificateOptions{Names: []string{"*.wild.test"}})
	s.serve(ctx, "bank", "bank.test", testkit.CertificateOptions{Names: []string{"bank.test"}})
	a, err := s.API.Do(ctx, http.MethodPatch, "/service/bank?wait=applied", "application/json", `{"client_validation_cacertificate":"clients"}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	return s
}

// serve creates a service with a route / and certificates.
func (s secured) serve(ctx context.Context, name, fqdn string, certificates ...testkit.CertificateOptions) {
	GinkgoHelper()
	s.post(ctx, "/service", "Service_Name="+name, "fqdn="+fqdn)
	s.post(ctx, "/service/"+name+"/route", "Route_Name=root", "Route_prefix=/")
	s.post(ctx, "/service/"+name+"/route/root/upstream/blue")
	for i, o := range certificates {
		secret := name + "-" + strconv.Itoa(i)
		pair, err := s.authority.Issue(o)
		Expect(err).NotTo(HaveOccurred())
		s.post(ctx, "/secret", "Secret_name="+secret, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
		s.post(ctx, "/service/"+name+"/secret/"+secret)
	}
	s.post(ctx, "/proxy/gw/service/"+name+"?wait=applied")
}

func (s secured) post(ctx context.Context, path string, fields ...string) {
	GinkgoHelper()
	a, err := s.API.Post(ctx, path, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusCreated), "POST %s: %s", path, a.Body)
}

// logged is a request in Envoy's access log.
type logged struct {
	Protocol string `json:"protocol"`
	Version  string `json:"tls_version"`
	SNI      string `json:"sni"`
	Subject  string `json:"downstream_peer_subject"`
	Path     string `json:"path"`
	Host     string `json:"authority"`
	Status   int    `json:"response_code"`
	Details  string `json:"response_code_details"`
	Client   string `json:"downstream_remote_address"`
}

// requests returns the lines of the access log for a path, in order.
func (s secured) requests(path string) (list []logged) {
	for _, line := range append(s.Stdout.Lines(), s.Stderr.Lines()...) {
		if !strings.Contains(line, path) {
			continue
		}
		if l := parse(line); l.Path == path {
			list = append(list, l)
		}
	}
	return list
}

// parse parses a line of the access log; the result is zero for any other line.
func parse(line string) (l logged) {
	_ = json.Unmarshal([]byte(line), &l)
	return l
}

// file writes a file into a new directory.
func file(name, text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}
