package attack_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// refused is the result of a connection for which no certificate is presented.
const refused = "refused"

// nameTry is a connection for a server name (SNI), with its expected result.
type nameTry struct {
	what  string
	names []string
	// want is the certificate's first name, or refused.
	want string
}

// serverNames returns ways to write a server name; more than one means several in one
// extension.
func serverNames() []nameTry {
	long := strings.Repeat("a", 63) + "."
	return []nameTry{
		{"bytes that are no UTF-8", []string{"\xff.wild.test"}, refused},
		{"the same below nothing", []string{"a\xc3"}, refused},
		{"a secret's resource", []string{"pair/open"}, refused},
		{"the authorities' resource", []string{"authorities/clients"}, refused},
		{"what is asked for without a name", []string{"default/"}, refused},
		{"two names", []string{"open.test", "bank.test"}, refused},
		{"a trailing dot", []string{"open.test."}, refused},
		{"an address", []string{"127.0.0.1"}, refused},
		{"nothing odd", []string{"open.test"}, "open.test"},
		{"upper case", []string{"OPEN.Test"}, "open.test"},
		{"an underscore below a wildcard", []string{"a_b.wild.test"}, "*.wild.test"},
		{"punycode below a wildcard", []string{"xn--bcher-kva.wild.test"}, "*.wild.test"},
		{"letters above ASCII", []string{"b\u00fccher.wild.test"}, refused},
		{"245 letters below a wildcard", []string{strings.Repeat("a", 245) + ".wild.test"}, "*.wild.test"},
		{"246 letters, which is too long", []string{strings.Repeat("a", 246) + ".wild.test"}, refused},
		{"a long name of many labels", []string{strings.Repeat(long, 3) + "wild.test"}, refused},
		{"two labels below a wildcard", []string{"a.b.wild.test"}, refused},
		{"the wildcard itself", []string{"*.wild.test"}, refused},
		{"a leading dot", []string{".wild.test"}, refused},
		{"no label", []string{"wild.test"}, refused},
		{"two dots", []string{"a..wild.test"}, refused},
		{"a zero byte", []string{"open.test\x00.wild.test"}, refused},
		{"a line break", []string{"a\n.wild.test"}, refused},
		{"a space", []string{"a .wild.test"}, refused},
		{"an empty name", []string{""}, refused},
		{"brackets", []string{"[::1]"}, refused},
		{"a port", []string{"open.test:443"}, refused},
		{"a name of nobody", []string{"other.test"}, refused},
		// This is the service for every host; it has a certificate.
		{"none", nil, "any.test"},
	}
}

// secureTarget is a gateway with HTTPS, where each service has a backend of its own:
//
//	open.test     a certificate
//	*.wild.test   a wildcard certificate
//	bank.test     asks clients for a certificate; it is called "bank"
//	*             any.test, and everything that names no host
type secureTarget struct {
	target
	authority *testkit.Authority
	addr      string
	bank      *testkit.Backend
}

func startSecure(ctx context.Context) secureTarget {
	GinkgoHelper()
	t := secureTarget{target: startTarget(ctx)}
	t.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(t.httpsPort))
	var err error
	t.authority, err = testkit.NewAuthority("attacks")
	Expect(err).NotTo(HaveOccurred())
	post := func(path string, fields ...string) {
		GinkgoHelper()
		a, err := t.API.Post(ctx, path, fields...)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), "POST %s: %s", path, a.Body)
	}
	post("/secret", "Secret_name=clients", "Secret_cert="+t.authority.PEM)
	for name, fqdn := range map[string]string{"open": "open.test", "wild": "*.wild.test", "bank": "bank.test"} {
		backend, err := testkit.StartBackend(name, testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(backend.Close)
		if name == "bank" {
			t.bank = backend
		}
		post("/upstream", "Upstream_name="+name, "Upstream_ip="+backend.IP, "Upstream_port="+strconv.Itoa(backend.Port))
		post("/service", "Service_Name="+name, "fqdn="+fqdn)
		post("/service/"+name+"/route", "Route_Name=root", "Route_prefix=/")
		post("/service/" + name + "/route/root/upstream/" + name)
	}
	for name, host := range map[string]string{"open": "open.test", "wild": "*.wild.test", "bank": "bank.test", "shop": "any.test"} {
		pair, err := t.authority.Issue(testkit.CertificateOptions{Names: []string{host}})
		Expect(err).NotTo(HaveOccurred())
		post("/secret", "Secret_name="+name, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
		post("/service/" + name + "/secret/" + name)
	}
	a, err := t.API.Do(ctx, http.MethodPatch, "/service/bank", "application/json", `{"client_validation_cacertificate":"clients"}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	for _, name := range []string{"open", "wild", "bank"} {
		post("/proxy/gw/service/" + name + "?wait=applied")
	}
	return t
}

// shown returns the first name in the certificate that is presented for server names,
// in TLS 1.2, where it is not encrypted.
func (t secureTarget) shown(ctx context.Context, names []string) string {
	GinkgoHelper()
	answer, err := testkit.ClientHello{
		Version: tls.VersionTLS12, Ciphers: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, Groups: []uint16{uint16(tls.CurveP256)},
		ServerNames: names,
	}.Send(ctx, t.addr)
	Expect(err).NotTo(HaveOccurred())
	if !answer.Accepted() {
		return refused
	}
	Expect(answer.Leaf).NotTo(BeNil())
	return answer.Leaf.DNSNames[0]
}

var _ = Describe("A server name", func() {
	It("gets the certificate of its service however it is written, or none", func(ctx SpecContext) {
		t, wrong := startSecure(ctx), ""
		for _, n := range serverNames() {
			began := time.Now()
			if got := t.shown(ctx, n.names); got != n.want {
				wrong += fmt.Sprintf("%s: %q: %s instead of %s (%s)\n", n.what, n.names, got, n.want, time.Since(began))
			}
		}
		Expect(wrong).To(BeEmpty())
		By("without a connection to the control plane")
		Expect(t.Records("envoy disconnected")).To(BeEmpty())
		Expect(t.Stderr.String()).NotTo(ContainSubstring("invalid UTF-8"))
		// Envoy still receives later changes.
		a, err := t.API.Post(ctx, "/service/open/route?wait=applied", "Route_Name=later", "Route_prefix=/later")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
	}, SpecTimeout(2*time.Minute))
})

// requestTry is a request over a connection for a server name, with its expected
// result: the backend that answers, or a status.
type requestTry struct {
	what, name string
	lines      []string
	want       string
}

// requests returns requests over HTTP/1.1 connections. Unless they say otherwise, the
// client presents no certificate.
func requests() []requestTry {
	get := func(what, name, want string, hosts ...string) requestTry {
		t := requestTry{what, name, []string{"GET / HTTP/1.1"}, want}
		for _, h := range hosts {
			t.lines = append(t.lines, "Host: "+h)
		}
		return t
	}
	return []requestTry{
		get("nothing odd", "open.test", "open", "open.test"),
		get("another host", "open.test", "421", "bank.test"),
		{"an absolute URL of another host", "open.test", []string{"GET https://bank.test/ HTTP/1.1", "Host: open.test"}, "421"},
		{"an absolute URL, another Host", "open.test", []string{"GET https://open.test/ HTTP/1.1", "Host: bank.test"}, "open"},
		get("no server name, a name as host", "", "421", "bank.test"),
		get("no server name, the name of its certificate", "", "421", "any.test"),
		get("no server name, an address", "", "blue", "127.0.0.1"),
		get("another host of the wildcard", "a.wild.test", "421", "b.wild.test"),
		get("the host itself, below the wildcard", "a.wild.test", "wild", "A.wild.test:8443"),
		get("a trailing dot", "open.test", "open", "open.test."),
		get("another host with a trailing dot", "open.test", "421", "bank.test."),
		get("another host in upper case", "open.test", "421", "BANK.TEST"),
		get("another host with a port", "open.test", "421", "bank.test:8443"),
		get("a host with another's port", "open.test", "400", "open.test:bank.test"),
		get("another host behind a comma", "open.test", "400", "open.test,bank.test"),
		get("a user that is the server name", "open.test", "400", "open.test@bank.test"),
		get("two hosts", "open.test", "400", "open.test", "bank.test"),
		get("no host", "open.test", "400"),
		get("an empty host", "open.test", "400", ""),
		get("an address", "open.test", "421", "127.0.0.1"),
		get("a host of nobody", "open.test", "421", "other.test"),
		{"HTTP/1.0", "open.test", []string{"GET / HTTP/1.0", "Host: open.test"}, "426"},
		{"HTTP/1.0 with another host", "open.test", []string{"GET / HTTP/1.0", "Host: bank.test"}, "426"},
		{"HTTP/1.0 without a host", "open.test", []string{"GET / HTTP/1.0"}, "426"},
		{"an absolute URL in plain HTTP", "open.test", []string{"GET http://open.test/ HTTP/1.1", "Host: open.test"}, "open"},
		{"an absolute URL in plain HTTP of another host", "open.test", []string{"GET http://bank.test/ HTTP/1.1", "Host: open.test"}, "421"},
		{"a host where the path begins", "open.test", []string{"GET //bank.test/ HTTP/1.1", "Host: open.test"}, "open"},
		{"what a proxy in front would say", "open.test", []string{"GET / HTTP/1.1", "Host: open.test", "X-Forwarded-Host: bank.test", "Forwarded: host=bank.test"}, "open"},
		{"CONNECT", "open.test", []string{"CONNECT bank.test:443 HTTP/1.1", "Host: bank.test:443"}, "421"},
	}
}

// requests2 returns requests over HTTP/2 connections, where lines are headers.
func requests2() []requestTry {
	get := func(what, name, want string, headers ...string) requestTry {
		return requestTry{what, name, append([]string{":method: GET", ":scheme: https", ":path: /"}, headers...), want}
	}
	return []requestTry{
		get("nothing odd", "open.test", "open", ":authority: open.test"),
		get("another host", "open.test", "421", ":authority: bank.test"),
		get("another Host beside it", "open.test", "open", ":authority: open.test", "host: bank.test"),
		get("the Host beside another", "open.test", "421", ":authority: bank.test", "host: open.test"),
		get("a Host alone", "open.test", "open", "host: open.test"),
		get("another Host alone", "open.test", "421", "host: bank.test"),
		get("another host of the wildcard", "a.wild.test", "421", ":authority: b.wild.test"),
		get("two authorities", "open.test", "dead", ":authority: open.test", ":authority: bank.test"),
		get("two Hosts", "open.test", "dead", "host: open.test", "host: bank.test"),
		get("no host", "open.test", "dead"),
		{"another scheme", "open.test", []string{":method: GET", ":scheme: http", ":path: /", ":authority: open.test"}, "open"},
		{"another scheme, another host", "open.test", []string{":method: GET", ":scheme: http", ":path: /", ":authority: bank.test"}, "421"},
		{"CONNECT", "open.test", []string{":method: CONNECT", ":authority: bank.test:443"}, "421"},
	}
}

// connect opens a TLS connection for a server name; "" means none.
func (t secureTarget) connect(ctx context.Context, name, protocol string, certificates ...tls.Certificate) net.Conn {
	GinkgoHelper()
	config := &tls.Config{ServerName: name, InsecureSkipVerify: name == "", RootCAs: t.authority.Pool(), NextProtos: []string{protocol}, Certificates: certificates} //nolint:gosec // for no name there is no certificate
	conn, err := testkit.Bounded((&tls.Dialer{Config: config}).DialContext(ctx, "tcp", t.addr))
	Expect(err).NotTo(HaveOccurred(), name)
	Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	return conn
}

// outcome returns the backend that has answered, or the status.
func outcome(a testkit.Answer) string {
	switch a.Status {
	case http.StatusOK:
		return a.Header.Get(testkit.BackendHeader)
	case dead:
		return "dead"
	}
	return strconv.Itoa(a.Status)
}

var _ = Describe("A request over TLS", func() {
	It("reaches no service other than that of its connection's server name", func(ctx SpecContext) {
		t, wrong := startSecure(ctx), ""
		for _, r := range requests() {
			conn := t.connect(ctx, r.name, "http/1.1")
			if got := outcome(exchange(conn, r.lines...)); got != r.want {
				wrong += fmt.Sprintf("%s: %q for %q: %s instead of %s\n", r.what, r.lines, r.name, got, r.want)
			}
			_ = conn.Close()
		}
		for _, r := range requests2() {
			conn := t.connect(ctx, r.name, "h2")
			if got := outcome(exchange2(conn, r.lines...)); got != r.want {
				wrong += fmt.Sprintf("%s in HTTP/2: %q for %q: %s instead of %s\n", r.what, r.lines, r.name, got, r.want)
			}
			_ = conn.Close()
		}
		Expect(wrong).To(BeEmpty())
		Expect(t.bank.Requests()).To(BeZero())

		By("a client with a certificate reaches only the service that requires it")
		pair, err := t.authority.Issue(testkit.CertificateOptions{Client: true, Subject: "ann"})
		Expect(err).NotTo(HaveOccurred())
		certificate, err := pair.TLS()
		Expect(err).NotTo(HaveOccurred())
		for name, wants := range map[string]map[string]string{
			"bank.test": {"bank.test": "bank", "open.test": "421", "127.0.0.1": "421"}, "open.test": {"bank.test": "421", "open.test": "open"},
		} {
			for host, want := range wants {
				conn := t.connect(ctx, name, "http/1.1", certificate)
				Expect(outcome(exchange(conn, "GET / HTTP/1.1", "Host: "+host))).To(Equal(want), "%s for %s", host, name)
				_ = conn.Close()
			}
		}
		Expect(t.bank.Requests()).To(BeEquivalentTo(1))
	}, SpecTimeout(2*time.Minute))

	It("without a certificate cannot connect to a service that requires one, in any letter case", func(ctx SpecContext) {
		t := startSecure(ctx)
		for _, name := range []string{"bank.test", "BANK.TEST", "Bank.test"} {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				config := &tls.Config{ServerName: name, RootCAs: t.authority.Pool(), MinVersion: version, MaxVersion: version}
				conn, err := testkit.Bounded((&tls.Dialer{Config: config}).DialContext(ctx, "tcp", t.addr))
				if err == nil { // in TLS 1.3 the client learns of it later
					_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", name)
					_, err = io.ReadAll(conn)
					_ = conn.Close()
				}
				Expect(err).To(HaveOccurred(), name)
			}
		}
		Expect(t.bank.Requests()).To(BeZero())
	}, SpecTimeout(time.Minute))

	// Go sends neither of the two as a server name.
	It("cannot connect with a server name that has a trailing dot, or is an address", func(ctx SpecContext) {
		t := startSecure(ctx)
		for name, want := range map[string]bool{"open.test": true, "open.test.": false, "127.0.0.1": false, "bank.test.": false} {
			cmd := exec.CommandContext(ctx, "openssl", "s_client", "-connect", t.addr, "-servername", name, "-quiet")
			cmd.Stdin, cmd.WaitDelay = strings.NewReader("GET / HTTP/1.1\r\nHost: "+strings.TrimSuffix(name, ".")+"\r\nConnection: close\r\n\r\n"), 10*time.Second
			out, _ := cmd.CombinedOutput() // it exits with 1 if it is refused
			Expect(strings.Contains(string(out), "HTTP/1.1 200")).To(Equal(want), "%s: %s", name, out)
			Expect(strings.Contains(string(out), "HTTP/")).To(Equal(want), "%s: %s", name, out)
		}
		Expect(t.bank.Requests()).To(BeZero())
	}, SpecTimeout(time.Minute))
})
