package clients_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// ask is a request for a client to send, on its own connection.
type ask struct {
	// Host is the host in the URL, and Path distinguishes the request from all others.
	Host, Path string
	// HTTP is 1.1 or 2, TLS 1.2 or 1.3.
	HTTP, TLS string
	// Cert and Key are files; empty means that the client has no certificate.
	Cert, Key string

	// want is what Envoy logs; nil means that no request arrives. why is then the
	// client's message, as far as it has one: with TLS 1.3 the server may refuse after
	// the client has sent its request.
	want *logged
	why  string
}

// result is the output of the client.
type result struct {
	Status int
	Error  string
}

// client sends requests, one after the other.
type client func(ctx context.Context, s secured, authority string, list []ask) []result

// show is what a client presents.
type show struct {
	what      string
	authority *testkit.Authority
	options   testkit.CertificateOptions
	subject   string // of an accepted certificate
	why       string
}

// asks returns the requests of one client.
func (s secured) asks(name string) (list []ask) {
	GinkgoHelper()
	other, err := testkit.NewAuthority("other")
	Expect(err).NotTo(HaveOccurred())
	shows := []show{
		{what: "right", authority: s.authority, options: testkit.CertificateOptions{Client: true, Subject: "ann"}, subject: "CN=ann"},
		{what: "right-rsa", authority: s.authority, options: testkit.CertificateOptions{Client: true, Subject: "bob", RSA: true}, subject: "CN=bob"},
		{what: "absent", why: `(?i)handshake.failure|certificate.required`},
		{what: "wrong", authority: other, options: testkit.CertificateOptions{Client: true, Subject: "ann"}, why: `(?i)unknown.(ca|certificate.authority)`},
		{what: "expired", authority: s.authority, why: `(?i)expired|verification failed`, // the latter is curl's message for it

			options: testkit.CertificateOptions{Client: true, Subject: "ann", NotAfter: time.Now().Add(-time.Hour)}},
		{what: "server's", authority: s.authority, options: testkit.CertificateOptions{Names: []string{"bank.test"}}, why: `(?i)unsupported.certificate|certificate`},
	}
	pairs := map[string]testkit.Pair{}
	for _, c := range shows {
		if c.authority != nil {
			pairs[c.what], err = c.authority.Issue(c.options)
			Expect(err).NotTo(HaveOccurred())
		}
	}
	for _, protocol := range []string{"1.1", "2"} {
		for _, version := range []string{"1.2", "1.3"} {
			want := logged{Protocol: map[string]string{"1.1": "HTTP/1.1", "2": "HTTP/2"}[protocol], Version: "TLSv" + version, Status: http.StatusOK}
			add := func(host, what string) *ask {
				list = append(list, ask{Host: host, HTTP: protocol, TLS: version, Path: fmt.Sprintf("/%s/%s/%s/%s/%s", name, protocol, version, host, what)})
				return &list[len(list)-1]
			}
			for _, host := range []string{"ec.test", "rsa.test", "both.test", "a.wild.test", "xn--bcher-kva.wild.test", "EC.TEST", "B.Wild.Test"} {
				w := want
				w.SNI = strings.ToLower(host)
				add(host, "").want = &w
			}
			for _, c := range shows {
				a := add("bank.test", c.what)
				if pair, ok := pairs[c.what]; ok {
					a.Cert, a.Key = file("cert.pem", pair.Cert), file("key.pem", pair.Key)
				}
				if a.why = c.why; c.why == "" {
					w := want
					w.SNI, w.Subject = "bank.test", c.subject
					a.want = &w
				}
			}
		}
	}
	return list
}

var _ = Describe("HTTPS is served to", func() {
	DescribeTable("clients of HTTP/1.1 and HTTP/2, TLS 1.2 and 1.3, with valid, wrong, expired and missing certificates of their own",
		func(ctx SpecContext, name string, send client) {
			s := secure(ctx)
			list, authority, wrong, arrived := s.asks(name), file("ca.pem", s.authority.PEM), "", 0
			for i, got := range send(ctx, s, authority, list) {
				a := list[i]
				if a.want == nil {
					if got.Status != 0 || got.Error == "" {
						wrong += fmt.Sprintf("%s: is let in: %+v\n", a.Path, got)
					} else if a.TLS == "1.2" && !regexp.MustCompile(a.why).MatchString(got.Error) {
						wrong += fmt.Sprintf("%s: is not told why: %s\n", a.Path, got.Error)
					}
					continue
				}
				arrived++
				if got != (result{Status: http.StatusOK}) {
					wrong += fmt.Sprintf("%s: %+v\n", a.Path, got)
					continue
				}
				Eventually(s.requests).WithArguments(a.Path).Should(HaveLen(1), a.Path)
				have := s.requests(a.Path)[0]
				want := *a.want
				want.Path, want.Host, want.Details, want.Client = have.Path, have.Host, have.Details, have.Client
				if have != want {
					wrong += fmt.Sprintf("%s: %+v instead of %+v\n", a.Path, have, want)
				}
			}
			Expect(wrong).To(BeEmpty())
			Expect(list).To(HaveLen(2 * 2 * (7 + 6)))
			Expect(s.blue.Requests()).To(BeEquivalentTo(arrived), "only the requests of accepted clients")
		},
		Entry("curl", "curl", client(curl), SpecTimeout(3*time.Minute)),
		Entry("Go", "go", client(goHTTP), SpecTimeout(3*time.Minute)),
		Entry("Python, with its standard library and httpx", "python", client(python), SpecTimeout(3*time.Minute)),
		Entry("openssl s_client", "openssl", client(openssl), SpecTimeout(3*time.Minute)),
	)

	It("clients that do not support elliptic curves in certificates, with the RSA one", func(ctx SpecContext) {
		s := secure(ctx)
		authority := file("ca.pem", s.authority.PEM)
		for _, args := range [][]string{{"-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"}, {"-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"}} {
			cmd := exec.CommandContext(ctx, "openssl", append([]string{"s_client", "-connect", s.addr, "-servername", "both.test", "-CAfile", authority}, args...)...)
			out, err := cmd.CombinedOutput() // without input it exits after the handshake
			Expect(err).NotTo(HaveOccurred(), string(out))
			Expect(string(out)).To(And(ContainSubstring("Peer signature type: RSA-PSS"), ContainSubstring("Verify return code: 0")), "%q", args)
		}
		host := "both.test:" + port(s.addr)
		out, err := exec.CommandContext(ctx, "curl", "-sS", "--resolve", host+":127.0.0.1", "--cacert", authority, "--tls-max", "1.2",
			"--ciphers", "ECDHE-RSA-AES256-GCM-SHA384", "-o", os.DevNull, "-w", "%{http_code}", "https://"+host).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(Equal("200"))
	}, SpecTimeout(time.Minute))
})

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// one sends one request.
type one func(ctx context.Context, s secured, authority string, a ask) result

func (send one) each(ctx context.Context, s secured, authority string, list []ask) (results []result) {
	for _, a := range list {
		results = append(results, send(ctx, s, authority, a))
	}
	return results
}

func curl(ctx context.Context, s secured, authority string, list []ask) []result {
	return one(func(ctx context.Context, s secured, authority string, a ask) result {
		host := a.Host + ":" + port(s.addr)
		args := []string{
			"-sS", "--resolve", strings.ToLower(host) + ":127.0.0.1", "--cacert", authority, "--tlsv" + a.TLS, "--tls-max", a.TLS,
			"--http" + a.HTTP, "-o", os.DevNull, "-w", "%{http_code}",
		}
		if a.Cert != "" {
			args = append(args, "--cert", a.Cert, "--key", a.Key)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, "curl", append(args, "https://"+host+a.Path)...)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return result{Error: err.Error() + ": " + said.String()}
		}
		status, err := strconv.Atoi(string(out))
		Expect(err).NotTo(HaveOccurred())
		return result{Status: status}
	}).each(ctx, s, authority, list)
}

func goHTTP(ctx context.Context, s secured, authority string, list []ask) []result {
	return one(func(ctx context.Context, s secured, _ string, a ask) result {
		version := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[a.TLS]
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: s.authority.Pool(), MinVersion: version, MaxVersion: version},
			Protocols:       &http.Protocols{},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, s.addr)
			},
		}
		defer transport.CloseIdleConnections()
		transport.Protocols.SetHTTP1(a.HTTP == "1.1")
		transport.Protocols.SetHTTP2(a.HTTP == "2")
		if a.Cert != "" {
			pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
			Expect(err).NotTo(HaveOccurred())
			// Even if it is none of those that the server requests.
			transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.Host+a.Path, nil)
		Expect(err).NotTo(HaveOccurred())
		resp, err := (&http.Client{Timeout: testkit.Patience, Transport: transport}).Do(req)
		if err != nil {
			return result{Error: err.Error()}
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		Expect(err).NotTo(HaveOccurred())
		return result{Status: resp.StatusCode}
	}).each(ctx, s, authority, list)
}

// python sends all of them from one process.
func python(ctx context.Context, s secured, authority string, list []ask) (results []result) {
	GinkgoHelper()
	tools, err := testkit.Binary("clients")
	Expect(err).NotTo(HaveOccurred(), "`make clients` fetches them")
	input, err := json.Marshal(list)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, filepath.Join(tools, "bin", "python"), "testdata/https/main.py", s.addr, authority)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr, cmd.Env = bytes.NewReader(input), &said, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), said.String())
	Expect(json.Unmarshal(out, &results)).To(Succeed(), "%s", out)
	return results
}

// openssl does not implement HTTP: it receives the bytes of a request, and prints those
// of the answer.
func openssl(ctx context.Context, s secured, authority string, list []ask) []result {
	return one(func(ctx context.Context, s secured, authority string, a ask) result {
		args := []string{
			"s_client", "-connect", s.addr, "-servername", a.Host, "-verify_hostname", a.Host, "-verify_return_error", "-CAfile", authority,
			"-tls1_" + strings.TrimPrefix(a.TLS, "1."), "-quiet", "-alpn", map[string]string{"1.1": "http/1.1", "2": "h2"}[a.HTTP],
		}
		if a.Cert != "" {
			args = append(args, "-cert", a.Cert, "-key", a.Key)
		}
		cmd := exec.CommandContext(ctx, "openssl", args...)
		var said testkit.Output
		cmd.Stdout, cmd.Stderr = &said, &said
		stdin, err := cmd.StdinPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Start()).To(Succeed())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// It may have exited already.
		_, _ = stdin.Write(requestBytes(a))
		answered := func() bool { return strings.Contains(said.String(), `"Backend":"blue"`) }
		Eventually(func() bool { return answered() || len(ended) > 0 }).WithContext(ctx).Should(BeTrue(), said.String)
		if !answered() {
			return result{Error: fmt.Sprint(<-ended, ": ", said.String())}
		}
		Expect(cmd.Process.Kill()).To(Or(Succeed(), MatchError(os.ErrProcessDone))) // otherwise it waits for the server
		<-ended
		return result{Status: http.StatusOK}
	}).each(ctx, s, authority, list)
}

// requestBytes returns a request as it is on the wire.
func requestBytes(a ask) []byte {
	GinkgoHelper()
	if a.HTTP == "1.1" {
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", a.Path, a.Host)
	}
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	encoder := hpack.NewEncoder(&block)
	for _, h := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: a.Host}, {Name: ":path", Value: a.Path}} {
		Expect(encoder.WriteField(h)).To(Succeed())
	}
	framer := http2.NewFramer(&out, nil)
	Expect(framer.WriteSettings()).To(Succeed())
	Expect(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})).To(Succeed())
	return out.Bytes()
}
