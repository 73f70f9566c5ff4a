package e2e_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The access log", Ordered, ContinueOnFailure, func() {
	var (
		g      *testkit.Gatehouse
		gw     gateway
		key    string
		issuer = testkit.NewTokenIssuer("https://issuer.test", "a")
	)

	BeforeAll(func() {
		g, gw, _ = shop("--access-log", "json")
		post(gw.api, "/keyset", "Keyset_name=partners")
		var created struct {
			Data struct {
				Key string `json:"key"`
			}
		}
		a := post(gw.api, "/keyset/partners/key", "Key_name=mobile")
		Expect(json.Unmarshal([]byte(a.Body), &created)).To(Succeed())
		key = created.Data.Key
		for name, filter := range map[string]string{
			"keys":   `"http_filter_apikey","Filter_config":{"keys":"partners","from":[{"header":"x-api-key"},{"query":"apikey"},{"cookie":"key"}]}`,
			"users":  `"http_filter_basicauth","Filter_config":{"users":[{"name":"ann","password":"correct-horse-battery"}]}`,
			"tokens": `"http_filter_jwt","Filter_config":{"issuer":"https://issuer.test","jwks":` + issuer.JWKS() + `,"from":{"query":"access"}}`,
			"any":    `"http_filter_anyof","Filter_config":{"apikey":{"keys":"partners"},"basicauth":{"users":[{"name":"bob","password":"correct-horse-battery"}]}}`,
		} {
			a, err := gw.api.Do(limit(), http.MethodPost, "/filter", "application/json", `{"Filter_name":"`+name+`","Filter_type":`+filter+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
			post(gw.api, "/service", "Service_Name="+name, "fqdn="+name+".test")
			addRoute(gw.api, name, "main", "/", "", "blue")
			post(gw.api, "/service/"+name+"/filter/"+name)
			post(gw.api, "/proxy/gw/service/"+name+"?wait=applied")
		}
	})

	line := func(path string) (string, map[string]any) {
		GinkgoHelper()
		return lineOf(g, path)
	}
	basic := func(user string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":correct-horse-battery"))
	}

	DescribeTable("has the service and who called, and no credential", func(host, path string, header func() []string, client, subject any) {
		target := path
		if host == "tokens.test" {
			target += "?access=" + issuer.Token(map[string]any{"sub": "ann@example.com"})
		}
		if path == "/a-key-in-the-query" {
			target += "?apikey=" + url.QueryEscape(key)
		}
		Expect(gw.get(host, target, header()...).Status).To(Equal(http.StatusOK))
		text, fields := line(path)
		Expect(fields).To(And(HaveKeyWithValue("client", client), HaveKeyWithValue("subject", subject)), text)
		Expect(fields).To(And(HaveKeyWithValue("service", strings.TrimSuffix(host, ".test")), HaveKeyWithValue("path", path)), text)
		Expect(fields).To(HaveKeyWithValue("upstream_duration_ms", BeNumerically(">=", 0)), text)
		Expect(text).NotTo(Or(ContainSubstring(key), ContainSubstring(url.QueryEscape(key)), ContainSubstring("apikey="), ContainSubstring("access="), ContainSubstring("correct-horse"), ContainSubstring("Basic ")))
	},
		Entry("an API key", "keys.test", "/a-key", func() []string { return []string{"X-Api-Key: " + key} }, "partners/mobile", BeNil()),
		Entry("an API key in the query", "keys.test", "/a-key-in-the-query", func() []string { return nil }, "partners/mobile", BeNil()),
		Entry("an API key in a cookie", "keys.test", "/a-key-in-a-cookie", func() []string { return []string{"Cookie: key=" + key} }, "partners/mobile", BeNil()),
		Entry("a password", "users.test", "/a-user", func() []string { return []string{basic("ann")} }, "ann", BeNil()),
		Entry("one of several: a key", "any.test", "/any-key", func() []string { return []string{"X-Api-Key: " + key} }, "partners/mobile", BeNil()),
		Entry("one of several: a password", "any.test", "/any-user", func() []string { return []string{basic("bob")} }, "bob", BeNil()),
		Entry("a token", "tokens.test", "/a-token", func() []string { return nil }, BeNil(), "ann@example.com"),
	)

	It("does not believe a header of the client", func() {
		gw.get("shop.example", "/anybody", "X-Client: root")
		_, fields := line("/anybody")
		Expect(fields).To(And(HaveKeyWithValue("client", BeNil()), HaveKeyWithValue("subject", BeNil()), HaveKeyWithValue("service", "shop"), HaveKeyWithValue("route", "root")))
	})

	It("has null where no upstream answered", func() {
		Expect(gw.get("keys.test", "/refused?apikey=wrong-key").Status).To(Equal(http.StatusUnauthorized))
		text, fields := line("/refused")
		Expect(text).NotTo(ContainSubstring("wrong-key"))
		Expect(fields).To(And(HaveKeyWithValue("upstream_duration_ms", BeNil()), HaveKeyWithValue("client", BeNil()), HaveKeyWithValue("service", "keys")))
	})

	It("bounds what a client chooses", func() {
		long := strings.Repeat("x", 4000)
		gw.get("shop.example", "/long"+long, "User-Agent: "+long, "X-Request-Id: "+long)
		text, fields := line("/long")
		Expect(len(text)).To(BeNumerically("<", 3000))
		Expect(fields["path"]).To(HaveLen(1024))
		Expect(fields["user_agent"]).To(HaveLen(256))
		Expect(len(fields["request_id"].(string))).To(BeNumerically("<=", 64))
	})

	It("bounds the reason that a processing server gives", func() {
		processor, err := testkit.StartProcessor()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(processor.Close)
		post(gw.api, "/upstream", "Upstream_name=processor", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", processor.Port))
		post(gw.api, "/filter", "Filter_name=process", "Filter_type=http_filter_extproc", `Filter_config={"upstream":"processor"}`)
		post(gw.api, "/service", "Service_Name=processed", "fqdn=processed.test")
		addRoute(gw.api, "processed", "main", "/", "", "blue")
		post(gw.api, "/service/processed/filter/process")
		post(gw.api, "/proxy/gw/service/processed?wait=applied")
		a := gw.get("processed.test", "/denied", "X-Deny: 403", "X-Details: "+strings.Repeat("x", 4000))
		Expect(a.Status).To(Equal(http.StatusForbidden))
		text, fields := line("/denied")
		Expect(fields["response_code_details"]).To(Equal(strings.Repeat("x", 256)), text)
	})
})

// lineOf returns the line of the request with a path.
func lineOf(g *testkit.Gatehouse, path string) (text string, fields map[string]any) {
	GinkgoHelper()
	Eventually(func() string {
		for _, l := range g.Stdout.Lines() {
			if strings.Contains(l, `"path":"`+path) {
				text = l
			}
		}
		return text
	}).ShouldNot(BeEmpty())
	Expect(json.Unmarshal([]byte(text), &fields)).To(Succeed())
	return text, fields
}

var _ = Describe("The access log of HTTPS", func() {
	It("has the subject of a login", func() {
		l := newLoginLab("--access-log", "json")
		l.protect("office", "office.test", nil)
		b := l.loggedIn("anna", "office.test")
		Expect(l.ask(b, http.MethodGet, "office.test", "/desk").Status).To(Equal(http.StatusOK))
		text, fields := lineOf(l.Gatehouse, "/desk")
		Expect(fields).To(And(HaveKeyWithValue("subject", "anna"), HaveKeyWithValue("client", BeNil()), HaveKeyWithValue("service", "office")), text)
	})

	It("has the subject of a certificate, and bounds it", func() {
		s, _ := secure("--access-log", "json")
		post(s.api, "/secret", "Secret_name=clients", "Secret_cert="+s.authority.PEM)
		s.serve("bank", "bank.test", "bank.test")
		_, err := s.api.Do(limit(), http.MethodPatch, "/service/bank?wait=applied", "application/x-www-form-urlencoded", "Client_validation_cacertificate=clients")
		Expect(err).NotTo(HaveOccurred())
		for subject, logged := range map[string]string{"ann": "CN=ann", strings.Repeat("x", 4000): "CN=" + strings.Repeat("x", 253)} {
			pair, err := s.authority.Issue(testkit.CertificateOptions{Client: true, Subject: subject})
			Expect(err).NotTo(HaveOccurred())
			cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
			Expect(err).NotTo(HaveOccurred())
			status, body, _ := s.ask("bank.test", "bank.test", func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} })
			Expect(status).To(Equal(http.StatusOK), body)
			Eventually(s.Stdout.String).Should(ContainSubstring(`"downstream_peer_subject":"` + logged + `"`))
		}
	})
})
