package attack_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// consumerHeaders tell the backend who a consumer is.
var consumerHeaders = []string{"X-Consumer-Name", "X-Consumer-Groups"}

// consumerIn returns the consumer that the backend was told of, or else the status.
func consumerIn(status int, body []byte) string {
	var echo testkit.Echo
	if status != http.StatusOK || json.Unmarshal(body, &echo) != nil {
		return fmt.Sprint(status)
	}
	said := []string{"nobody"}
	for i, header := range consumerHeaders {
		if values := echo.Headers[header]; len(values) > 0 {
			said = append(said[:i], strings.Join(values, "+"))
		}
	}
	return strings.Join(said, " in ")
}

// certified is a gateway with hosts that verify certificates of different authorities, and one that verifies none.
type certified struct {
	target
	server  *testkit.Authority
	clients map[string]*testkit.Authority
}

func startCertified(ctx context.Context) certified {
	GinkgoHelper()
	t := certified{target: startTarget(ctx), clients: map[string]*testkit.Authority{}}
	var err error
	t.server, err = testkit.NewAuthority("servers")
	Expect(err).NotTo(HaveOccurred())
	t.add(ctx, "/filter", "Filter_name=known", "Filter_type=http_filter_consumer", "Filter_config={}")
	t.add(ctx, "/filter", "Filter_name=anybody", "Filter_type=http_filter_consumer", `Filter_config={"required":false}`)
	for _, name := range []string{"bank", "evil", "open"} {
		pair, err := t.server.Issue(testkit.CertificateOptions{Names: []string{name + ".test"}})
		Expect(err).NotTo(HaveOccurred())
		t.add(ctx, "/secret", "Secret_name="+name, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
		filter := "anybody"
		if name != "open" { // before the service, which is deleted first
			filter = "known"
			t.clients[name], err = testkit.NewAuthority("clients of " + name)
			Expect(err).NotTo(HaveOccurred())
			t.add(ctx, "/secret", "Secret_name=clients-of-"+name, "Secret_cert="+t.clients[name].PEM)
		}
		t.addService(ctx, name, name+".test")
		t.link(ctx, "/service/"+name+"/secret/"+name)
		if name != "open" {
			a, err := t.API.Do(ctx, http.MethodPatch, "/service/"+name, "application/json", `{"client_validation_cacertificate":"clients-of-`+name+`"}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		}
		t.link(ctx, "/service/"+name+"/filter/"+filter)
	}
	for name, credential := range map[string]string{"ann": `{"subject":"CN=ann,O=Acme"}`, "ben": `{"uri":"spiffe://acme.test/ben"}`, "cay": `{"dns":"cay.acme.test"}`} {
		t.add(ctx, "/consumer", "Consumer_name="+name, "Consumer_groups=staff", `Consumer_credentials={"certificates":[`+credential+`]}`)
	}
	for _, name := range []string{"bank", "evil", "open"} {
		t.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
	}
	return t
}

// ask sends a request over a connection for a server name, with a client certificate.
func (t certified) ask(ctx context.Context, sni, host string, o testkit.CertificateOptions, of string) string {
	GinkgoHelper()
	o.Client = true
	pair, err := t.clients[of].Issue(o)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := pair.TLS()
	Expect(err).NotTo(HaveOccurred())
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		ServerName: sni, RootCAs: t.server.Pool(), MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/", t.httpsPort), http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	req.Host = host
	for _, header := range consumerHeaders {
		req.Header.Set(header, "boss")
	}
	resp, err := client.Do(req)
	if err != nil {
		return "refused"
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return consumerIn(resp.StatusCode, body)
}

func acme(t *x509.Certificate) { t.Subject.Organization = []string{"Acme"} }

var _ = Describe("A consumer with a client certificate", func() {
	It("is found by what the service's own authorities have signed, and by nothing else", func(ctx SpecContext) {
		t := startCertified(ctx)
		ann := testkit.CertificateOptions{Subject: "ann", Change: acme}
		Eventually(func() string { return t.ask(ctx, "bank.test", "bank.test", ann, "bank") }).WithContext(ctx).Should(Equal("ann in staff"))
		for _, try := range []struct {
			what, sni, host string
			certificate     testkit.CertificateOptions
			of, want        string
		}{
			{"a URI", "bank.test", "bank.test", testkit.CertificateOptions{Subject: "x", URIs: []string{"spiffe://acme.test/other", "spiffe://acme.test/ben"}}, "bank", "ben in staff"},
			{"a DNS name", "bank.test", "bank.test", testkit.CertificateOptions{Names: []string{"cay.acme.test"}}, "bank", "cay in staff"},
			{"a part of the subject", "bank.test", "bank.test", testkit.CertificateOptions{Subject: "ann"}, "bank", "403"},
			{"a subject that contains another", "bank.test", "bank.test", testkit.CertificateOptions{Subject: "ann,O=Acme"}, "bank", "403"},
			{"a DNS name as a URI", "bank.test", "bank.test", testkit.CertificateOptions{URIs: []string{"cay.acme.test"}}, "bank", "403"},
			{"names of two consumers", "bank.test", "bank.test", testkit.CertificateOptions{Subject: "ann", Change: acme, Names: []string{"cay.acme.test"}}, "bank", "403"},
			{"a certificate of another service's authority", "bank.test", "bank.test", ann, "evil", "refused"},
			{"it there", "evil.test", "evil.test", ann, "evil", "ann in staff"},
			{"it from there", "evil.test", "bank.test", ann, "evil", "421"},
			{"it from there, where nobody is verified", "evil.test", "open.test", ann, "evil", "421"},
			{"a certificate that nobody verifies", "open.test", "open.test", ann, "bank", "nobody"},
		} {
			Expect(t.ask(ctx, try.sni, try.host, try.certificate, try.of)).To(Equal(try.want), try.what)
		}
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("The name of a consumer in a header", func() {
	It("reaches the backend from no client, whatever route of the service it uses", func(ctx SpecContext) {
		t := startTarget(ctx)
		t.add(ctx, "/filter", "Filter_name=known", "Filter_type=http_filter_consumer", `Filter_config={"groups_header":"x-tier"}`)
		t.add(ctx, "/filter", "Filter_name=anybody", "Filter_type=http_filter_consumer", `Filter_config={"required":false}`)
		t.addService(ctx, "told", "told.test")
		for _, route := range []string{"known", "anybody", "public"} {
			fields := []string{"Route_Name=" + route, "Route_prefix=/" + route}
			if route == "public" {
				fields = append(fields, `Route_config={"public":true}`)
			}
			t.add(ctx, "/service/told/route", fields...)
			t.link(ctx, "/service/told/route/"+route+"/upstream/blue")
		}
		t.link(ctx, "/service/told/route/known/filter/known")
		t.link(ctx, "/service/told/route/anybody/filter/anybody")
		t.link(ctx, "/service/told/route/public/filter/known")
		t.link(ctx, "/proxy/gw/service/told?wait=applied")
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", t.port)}
		for path, want := range map[string]int{"/": 200, "/known": 403, "/anybody": 200, "/public": 200} {
			headers := []string{"Host: told.test", "x-consumer-name: boss", "X-CONSUMER-GROUPS: staff", "x-tier: gold", "X-Consumer-Name: boss"}
			var a testkit.Answer
			Eventually(func() int { a = try(ctx, base, http.MethodGet, path, "", headers...); return a.Status }).Should(Equal(want), path)
			var echo testkit.Echo
			if want == http.StatusOK {
				Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
			}
			for _, header := range append(consumerHeaders, "X-Tier") {
				Expect(echo.Headers).NotTo(HaveKey(header), path)
			}
		}
	}, SpecTimeout(2*time.Minute))
})
