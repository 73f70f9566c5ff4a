package kubernetes_test

import (
	"crypto/tls"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// secure starts a backend over TLS that tells which SNI it was asked for.
func secure(name, protocol string, ca *testkit.Authority, asked chan<- string, o testkit.CertificateOptions) *testkit.Backend {
	GinkgoHelper()
	pair, err := ca.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
	Expect(err).NotTo(HaveOccurred())
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		select {
		case asked <- hello.ServerName:
		default:
		}
		return nil, nil
	}}
	b, err := testkit.StartBackend(name, testkit.BackendOptions{IP: ownAddress(), Protocol: protocol, TLS: config})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	return b
}

// policy creates a BackendTLSPolicy for a Service, and the section of it after a slash.
func (p place) policy(name, service, validation string) {
	GinkgoHelper()
	service, section, _ := strings.Cut(service, "/")
	if section != "" {
		section = ", sectionName: " + section
	}
	p.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: %s}\nspec: {targetRefs: [{group: \"\", kind: Service, name: %s%s}], validation: {%s}}\n",
		name, service, section, validation)
}

// configMap creates a ConfigMap with authorities.
func (p place) configMap(name, ca string) {
	GinkgoHelper()
	p.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {ca.crt: %q}\n", name, ca)
}

// ancestor returns a condition of the first ancestor of a policy.
func (p place) ancestor(name, condition string) func() string {
	return func() string {
		return p.jsonPath("backendtlspolicy", name, fmt.Sprintf(`{.status.ancestors[0].ancestorRef.name} {range .status.ancestors[0].conditions[?(@.type==%q)]}{.status} {.reason}{end}`, condition))
	}
}

var _ = Describe("A BackendTLSPolicy", func() {
	It("verifies a Service as it says, and closes it if that cannot be done", func() {
		ca, err := testkit.NewAuthority("backends")
		Expect(err).NotTo(HaveOccurred())
		other, err := testkit.NewAuthority("others")
		Expect(err).NotTo(HaveOccurred())
		foreign := newPlace(cluster)
		e := newEdge([]place{foreign})
		asked := make(chan string, 1000)
		b := secure("blue", "tls", ca, asked, testkit.CertificateOptions{Names: []string{"abc.example", "other.example"}, URIs: []string{"spiffe://abc.example/id"}})
		for _, name := range []string{"plain", "named", "wrong", "uri", "mismatch", "missing", "kind", "signed", "secret", "options", "first", "section"} {
			e.service(name, b)
		}
		e.service("grpc", secure("green", "h2", ca, asked, testkit.CertificateOptions{Names: []string{"abc.example"}}))
		e.configMap("ca", ca.PEM)
		e.configMap("others", other.PEM)
		foreign.configMap("foreign", ca.PEM)
		e.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: ca}\nstringData: {ca.crt: %q}\n", ca.PEM)
		const by, name = "caCertificateRefs: [{group: \"\", kind: ConfigMap, name: ca}], ", "hostname: abc.example"
		for service, validation := range map[string]string{
			"named": by + name, "wrong": by + "hostname: mismatch.example", "grpc": by + name,
			"uri":      by + "hostname: sni.example, subjectAltNames: [{type: Hostname, hostname: no.example}, {type: URI, uri: \"spiffe://abc.example/id\"}]",
			"mismatch": by + name + ", subjectAltNames: [{type: URI, uri: \"spiffe://def.example/id\"}]",
			"missing":  "caCertificateRefs: [{group: \"\", kind: ConfigMap, name: foreign}], " + name,
			"kind":     "caCertificateRefs: [{group: x.example, kind: ConfigMap, name: ca}], " + name,
			"signed":   "caCertificateRefs: [{group: \"\", kind: ConfigMap, name: others}], " + name,
			"secret":   "caCertificateRefs: [{group: \"\", kind: ConfigMap, name: foreign}, {group: \"\", kind: Secret, name: ca}], " + name,
		} {
			e.policy(service, service, validation)
		}
		e.policy("a-first", "first", by+name)
		e.policy("b-second", "first", by+"hostname: mismatch.example")
		e.policy("all-ports", "section", by+"hostname: mismatch.example")
		e.policy("one-port", "section/http", by+name)
		e.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: options}\nspec: {targetRefs: [{group: \"\", kind: Service, name: options}], options: {example.com/min: \"1.3\"}, validation: {wellKnownCACertificates: System, %s}}\n", name)
		e.listeners(anyHTTP)
		var rules []string
		for _, service := range []string{"plain", "named", "wrong", "uri", "mismatch", "missing", "kind", "signed", "secret", "options", "first", "section"} {
			rules = append(rules, fmt.Sprintf("{matches: [{path: {value: /%s}}], backendRefs: [{name: %[1]s, port: 80}]}", service))
		}
		e.route(e.place, "shop", "  hostnames: [shop.example]\n  rules: ["+strings.Join(rules, ", ")+"]")
		e.routeOf("GRPCRoute", e.place, "calls", "  hostnames: [calls.example]\n  rules: [{backendRefs: [{name: grpc, port: 80}]}]")
		status := func(path string) func() string { return func() string { return e.ask("GET shop.example /" + path) } }

		for _, path := range []string{"named", "uri", "secret", "first", "section"} {
			Eventually(status(path)).Should(Equal("200 blue"), e.Stderr.String)
		}
		Eventually(func() string { return e.ask("POST calls.example /a.B/C") }).Should(Equal("200 green"))
		Expect(status("plain")()).To(Equal("400"), "it needs TLS, and has no policy")
		for _, path := range []string{"wrong", "mismatch", "signed"} {
			Expect(status(path)()).To(Equal("503"), path)
		}
		for _, path := range []string{"missing", "kind", "options"} {
			Expect(status(path)()).To(Equal("500"), path)
		}
		names := map[string]bool{}
		for len(asked) > 0 {
			names[<-asked] = true
		}
		Expect(names).To(And(HaveKey("abc.example"), HaveKey("sni.example"), HaveKey("mismatch.example"), HaveLen(3)))

		By("its status, for the Gateway whose routes need it")
		for name, want := range map[string][2]string{
			"named": {"True Accepted", "True ResolvedRefs"}, "wrong": {"True Accepted", "True ResolvedRefs"},
			"missing": {"False NoValidCACertificate", "False InvalidCACertificateRef"}, "kind": {"False NoValidCACertificate", "False InvalidKind"},
			"secret": {"True Accepted", "False InvalidCACertificateRef"}, "options": {"False Invalid", "True ResolvedRefs"},
			"a-first": {"True Accepted", "True ResolvedRefs"}, "b-second": {"False Conflicted", "True ResolvedRefs"},
			"all-ports": {"True Accepted", "True ResolvedRefs"}, "one-port": {"True Accepted", "True ResolvedRefs"}, "grpc": {"True Accepted", "True ResolvedRefs"},
		} {
			Eventually(e.ancestor(name, "Accepted")).Should(Equal("web "+want[0]), name)
			Eventually(e.ancestor(name, "ResolvedRefs")).Should(Equal("web "+want[1]), name)
		}

		By("other authorities, and other policies")
		e.configMap("foreign", ca.PEM)
		Eventually(status("missing")).Should(Equal("200 blue"))
		Eventually(e.ancestor("missing", "Accepted")).Should(Equal("web True Accepted"))
		e.configMap("foreign", "none")
		Eventually(status("missing")).Should(Equal("500"))
		e.kubectl("delete", "backendtlspolicy", "a-first")
		Eventually(status("first")).Should(Equal("503"))
		Eventually(e.ancestor("b-second", "Accepted")).Should(Equal("web True Accepted"))
		e.kubectl("delete", "backendtlspolicy", "one-port")
		Eventually(status("section")).Should(Equal("503"))
		e.kubectl("delete", "httproute", "shop")
		Eventually(func() string { return e.jsonPath("backendtlspolicy", "named", "{.status.ancestors}") }).Should(Equal("[]"))
	})
})
