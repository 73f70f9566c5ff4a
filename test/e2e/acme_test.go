package e2e_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// ordering is a gateway that orders its certificates from an authority.
type ordering struct {
	secured
	pebble *testkit.Pebble
}

// order runs a gateway with a backend, no service, and an authority. config is more of the JSON of the global config.
func order(o testkit.PebbleOptions, config string, args ...string) ordering {
	GinkgoHelper()
	s, _ := secure(append([]string{"--provider-allow", "127.0.0.1"}, args...)...)
	o.HTTPPort = s.port
	p := pebbleWith(o)
	s.authority = rootOf(p)
	orderFrom(s.api, p, config)
	return ordering{s, p}
}

func pebbleWith(o testkit.PebbleOptions) *testkit.Pebble {
	GinkgoHelper()
	p, err := testkit.StartPebble(limit(), GinkgoT().TempDir(), o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return p
}

func rootOf(p *testkit.Pebble) *testkit.Authority {
	GinkgoHelper()
	root, err := p.Root(limit())
	Expect(err).NotTo(HaveOccurred())
	return root
}

// orderFrom names the authority for all proxies.
func orderFrom(api testkit.API, p *testkit.Pebble, config string) {
	GinkgoHelper()
	post(api, "/secret", "Secret_name=directory", "Secret_cert="+p.Authority.PEM)
	post(api, "/globalconfig", "globalconfig_name=authority", "globalconfig_type=globalconfig_acme",
		`config={"directory":"`+p.Directory+`","terms_agreed":true,"ca_certificate":"directory"`+config+`}`)
}

// automatic makes a service for a host in front of blue whose certificate the gateway orders.
func automatic(api testkit.API, name, fqdn string, fields ...string) {
	GinkgoHelper()
	if !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "Certificate=") }) {
		fields = append(fields, "Certificate=auto")
	}
	post(api, "/service", append([]string{"Service_Name=" + name, "fqdn=" + fqdn}, fields...)...)
	addRoute(api, name, "root", "/", "", "blue")
	post(api, "/proxy/gw/service/"+name)
}

// listed is an element of GET /certificate.
type listed struct {
	Host, Service, State, Directory, Serial, Reason, Advice string
	Challenge                                               string
	RecordLeft                                              string `json:"record_left"`
	Failures                                                int
	Next, NotAfter                                          string `json:"-"`
}

// certificatesOf returns what GET /certificate lists, by host.
func certificatesOf(api testkit.API) map[string]listed {
	GinkgoHelper()
	var body struct{ Data map[string][]listed }
	Expect(json.Unmarshal([]byte(read(api, "/certificate")), &body)).To(Succeed())
	all := map[string]listed{}
	for _, c := range body.Data["core_db_certificate"] {
		all[c.Host] = c
	}
	return all
}

// stateOf returns the state of the certificate of a host, with the reason if there is one.
func stateOf(api testkit.API, host string) func() string {
	return func() string {
		GinkgoHelper()
		c := certificatesOf(api)[host]
		return strings.TrimSuffix(c.State+": "+c.Reason, ": ")
	}
}

// serialOf returns the serial number of the certificate that clients get for a name, or why they get none.
func (s secured) serialOf(name string) string {
	conn, err := s.handshake(name)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Text(16)
}

// renew asks for a new certificate.
func renew(api testkit.API, host string) testkit.Answer {
	GinkgoHelper()
	a, err := api.Post(limit(), "/certificate/"+host+"/renew")
	Expect(err).NotTo(HaveOccurred())
	return a
}

const orderTime = testkit.Patience

var _ = Describe("An automatic certificate", func() {
	It("is ordered for the host of a service, and no other", func() {
		s := order(testkit.PebbleOptions{}, "")
		automatic(s.api, "shop", "shop.test")
		s.serve("plain", "plain.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() string { return s.serialOf("shop.test") }, orderTime).Should(Equal(certificatesOf(s.api)["shop.test"].Serial))
		status, body, _ := s.ask("shop.test", "shop.test")
		Expect(status).To(Equal(http.StatusOK), body)
		for _, name := range []string{"plain.test", "other.test", "x.shop.test", ""} {
			_, err := s.handshake(name)
			Expect(err).To(MatchError(ContainSubstring("handshake failure")), name)
		}
		Expect(certificatesOf(s.api)).To(HaveLen(1))
		Expect(s.pebble.Count(testkit.PebbleNewOrder)).To(Equal(1))
		Expect(s.pebble.Count(testkit.PebbleNewAccount)).To(Equal(1))
		By("and its conditions say nothing any more")
		Expect(read(s.api, "/service/shop")).NotTo(ContainSubstring("Certificate"))
		Expect(read(s.api, "/metrics")).To(ContainSubstring(`gatehouse_certificate_attempts_total{result="issued"} 1`))
		Expect(read(s.api, "/metrics")).To(MatchRegexp(`gatehouse_certificate_expiry_seconds\{secret="automatic:shop.test"\} [78]\.?[0-9]+e?`))
	})

	It("has a placeholder until it is issued, and an attached certificate wins over it", func() {
		s := order(testkit.PebbleOptions{}, `,"placeholder":true,"every_service":true`)
		issuing := s.authority
		s.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == testkit.PebbleNewOrder {
				s.pebble.Problem(w, http.StatusBadRequest, "malformed", "not now")
				return true
			}
			return false
		})
		s.serve("shop", "shop.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("failing: malformed: not now"))
		Eventually(func() string { return s.serialOf("shop.test") }).Should(ContainSubstring("certificate signed by unknown authority"))
		By("one by hand")
		own, err := testkit.NewAuthority("own")
		Expect(err).NotTo(HaveOccurred())
		s.authority = own
		s.issue("hand", testkit.CertificateOptions{Names: []string{"shop.test"}})
		applied(s.api, http.MethodPost, "/service/shop/secret/hand")
		Eventually(func() error { _, err := s.handshake("shop.test"); return err }).Should(Succeed())
		Expect(stateOf(s.api, "shop.test")()).To(Equal("by_hand"))
		Expect(renew(s.api, "shop.test").Status).To(Equal(http.StatusConflict))
		By("and the automatic one when it is detached")
		s.pebble.Answer(nil)
		applied(s.api, http.MethodDelete, "/service/shop/secret/hand")
		Expect(renew(s.api, "shop.test").Status).To(Equal(http.StatusOK))
		s.authority = issuing
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() string { return s.serialOf("shop.test") }).Should(Equal(certificatesOf(s.api)["shop.test"].Serial))
		By("and none is left when no service has the host")
		applied(s.api, http.MethodPatch, "/service/shop", "Certificate=manual")
		Expect(certificatesOf(s.api)).To(BeEmpty())
		Eventually(func() error { _, err := s.handshake("shop.test"); return err }).Should(HaveOccurred())
	})

	It("is proven by a route that is there only while the order runs, for its token only", func() {
		s := order(testkit.PebbleOptions{}, "")
		asked, answered := make(chan string), make(chan struct{})
		DeferCleanup(func() { close(answered) })
		s.pebble.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, testkit.PebbleChallenge) {
				asked <- r.URL.Path
				<-answered
			}
			return false
		})
		automatic(s.api, "shop", "shop.test", "Https=only")
		s.serve("other", "other.test")
		Eventually(asked, orderTime).Should(Receive())
		Expect(challengesOf(adminOf(s.Gatehouse))).To(HaveLen(1), "before the authority was told")
		token := challengesOf(adminOf(s.Gatehouse))[0]
		answer := s.get("shop.test", token)
		Expect(answer.Status).To(Equal(200))
		Expect(answer.Body).To(HavePrefix(strings.TrimPrefix(token, "/.well-known/acme-challenge/") + "."))
		Expect(answer.Header.Get(testkit.BackendHeader)).To(BeEmpty())
		Expect(s.answers("other.test", token)).To(Equal("blue"), "another host keeps the path")
		for _, path := range []string{token + "x", token + "/", "/.well-known/acme-challenge/", strings.ToUpper(token)} {
			Expect(s.answers("shop.test", path)).To(Equal("403"), path)
		}
		posted, err := s.send(http.MethodPost, "shop.test", token)
		Expect(err).NotTo(HaveOccurred())
		Expect(posted.Status).To(Equal(403), "other methods are the user's")
		answered <- struct{}{}
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() string { return s.answers("shop.test", token) }).Should(Equal("403"))
	})
})

// challengePath matches the paths that authorities ask for.
var challengePath = regexp.MustCompile(`/\.well-known/acme-challenge/[A-Za-z0-9_-]+`)

// challengesOf lists the challenges that an Envoy answers.
func challengesOf(admin testkit.API) []string {
	GinkgoHelper()
	found := challengePath.FindAllString(read(admin, "/config_dump?resource=dynamic_route_configs"), -1)
	slices.Sort(found)
	return slices.Compact(found)
}
