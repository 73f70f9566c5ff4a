package explain_test

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// secureSeeds times requestsPerSeed are 2,400 requests.
const secureSeeds = 12

// hstsOf returns the HSTS header that browsers receive.
func hstsOf(a explain.Answer) string {
	for _, f := range a.Filters {
		if _, rest, ok := strings.Cut(f.Message, "strict-transport-security: "); ok {
			value, _, _ := strings.Cut(rest, " in the answer")
			return value
		}
	}
	return ""
}

// visitor is a client of a TLS listener.
type visitor struct {
	// authority is the secret with the authority of its certificate; empty means that it has
	// none.
	authority string
	// rsaSuites says that it only has cipher suites for certificates with an RSA key.
	rsaSuites bool
	version   uint16 // the only one; 0 means any
}

// authorities are those of certificates, by secret.
type authorities map[string]*testkit.Authority

func newAuthorities() authorities {
	GinkgoHelper()
	all := authorities{}
	for _, name := range []string{"servers", "clients1", "clients2", "strangers"} {
		a, err := testkit.NewAuthority(name)
		Expect(err).NotTo(HaveOccurred())
		all[name] = a
	}
	return all
}

// certificates returns the client certificates of each authority.
func (all authorities) certificates() map[string]tls.Certificate {
	GinkgoHelper()
	list := map[string]tls.Certificate{}
	for name, a := range all {
		pair, err := a.Issue(testkit.CertificateOptions{Client: true, Subject: "client of " + name})
		Expect(err).NotTo(HaveOccurred())
		list[name], err = pair.TLS()
		Expect(err).NotTo(HaveOccurred())
	}
	return list
}

// addHTTPS adds fields of HTTPS to the services of a configuration.
func (g *generator) addHTTPS(objects []model.Object, all authorities) []model.Object {
	GinkgoHelper()
	for _, name := range []string{"clients1", "clients2"} {
		objects = append(objects, &model.Secret{Name: name, Cert: all[name].PEM})
	}
	var secrets []string
	for i, names := range [][]string{
		{"*.T", "T"}, {"a.T"}, {"*.a.T", "a.T"}, {"b.a.T", "c.b.a.T"}, {"*.b.a.T"}, {"x-y.T", "localhost"}, {"a.mixed.T"}, {"*.mixed.T", "b.T"}, {"*.c3.T"},
		{"a1.b2.c3.T"}, {"127.0.0.1"}, {"A.Mixed.T"}, {"*.T"}, {"*.T", "b.a.T"}, {"a.T", "*.a.T"},
	} {
		o := testkit.CertificateOptions{RSA: i > 11, NotAfter: time.Now().Add(time.Duration(1+g.rng.IntN(1000)) * time.Hour)}
		for _, name := range names {
			o.Names = append(o.Names, strings.ReplaceAll(name, "T", g.tld))
		}
		pair, err := all["servers"].Issue(o)
		Expect(err).NotTo(HaveOccurred())
		secrets = append(secrets, fmt.Sprintf("pair%d", i))
		objects = append(objects, &model.Secret{Name: secrets[i], Cert: pair.Cert, PrivateKey: pair.Key})
	}
	for _, o := range objects {
		s, ok := o.(*model.Service)
		if !ok || g.chance(6) {
			continue
		}
		s.HTTPS, s.HSTSSeconds = pick(g, "both", "both", "redirect", "only"), pick(g, 0, 0, 600, 31536000)
		s.HSTSSubdomains = s.HSTSSeconds > 0 && pick(g, true, false)
		if s.FQDN != "*" && g.chance(3) {
			s.ClientCACertificate = pick(g, "clients1", "clients2")
		}
		attached := map[string]bool{}
		for range g.rng.IntN(9) {
			if secret := pick(g, secrets...); !attached[secret] {
				attached[secret] = true
				objects = append(objects, &model.ServiceSecret{Service: s.Name, Secret: secret})
			}
		}
	}
	return objects
}

// secureRequest returns a request, usually over HTTPS, and its client.
func (g *generator) secureRequest() (explain.Request, visitor) {
	r, v := g.request(), visitor{}
	if g.chance(5) {
		r.Headers = append(r.Headers, explain.Header{Name: "X-Forwarded-Proto", Value: pick(g, "http", "https")})
	}
	if g.chance(4) {
		return r, v
	}
	r.TLS = true
	host := pick(g, g.domains...)
	if len(r.Headers) > 0 {
		host = r.Headers[0].Value
	}
	if g.chance(6) {
		host = g.host()
	}
	r.ServerName = serverName(host)
	if g.chance(10) {
		r.ServerName = ""
	}
	v = visitor{pick(g, "", "", "clients1", "clients2", "strangers"), g.chance(4), pick[uint16](g, 0, 0, tls.VersionTLS12, tls.VersionTLS13)}
	if v.rsaSuites {
		v.version = tls.VersionTLS12
	}
	return r, v
}

// serverName returns the part of a host that a client can send as the server name.
func serverName(host string) string {
	host, _, _ = strings.Cut(host, ":")
	host = strings.Trim(host, ".")
	if net.ParseIP(host) != nil || strings.ContainsFunc(host, func(c rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", c)
	}) {
		return ""
	}
	return host
}

// expected returns the fingerprint of the explained certificate, and whether the request is
// answered.
func expected(a explain.Answer, v visitor) (fingerprint string, answered bool) {
	if a.Code == explain.NoListener || a.Code == explain.NoCertificate {
		return "", false
	}
	if a.TLS.MinVersion == "1.3" && v.version == tls.VersionTLS12 {
		return "", false
	}
	shown := a.TLS.Certificates[0]
	if v.rsaSuites && shown.KeyType != "RSA" {
		return "", false // Envoy decides by the signature algorithms, all of which Go offers
	}
	return shown.Fingerprint, a.TLS.ClientAuthorities == "" || a.TLS.ClientAuthorities == v.authority
}

// sendSecurely sends a request over its own connection. The error is that of the handshake,
// or of a connection that Envoy closes after it.
func sendSecurely(addr string, r explain.Request, v visitor, own map[string]tls.Certificate) (got result, fingerprint string, err error) {
	config := &tls.Config{
		ServerName: r.ServerName, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c := own[v.authority]
			return &c, nil
		},
	}
	if v.version > 0 {
		config.MinVersion, config.MaxVersion = v.version, v.version
	}
	if v.rsaSuites {
		config.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", addr, config)
	if err != nil {
		return result{}, "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return result{}, "", err
	}
	if _, err := conn.Write(bytesOf(r)); err != nil {
		return result{}, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.Method})
	if err != nil {
		return result{}, "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return result{}, "", err
	}
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].Raw)
	return resultOf(resp, string(body)), hex.EncodeToString(sum[:]), nil
}

// secretOf returns the secret of a fingerprint.
func secretOf(objects []model.Object, fingerprint string) string {
	for _, o := range objects {
		s, ok := o.(*model.Secret)
		if !ok {
			continue
		}
		if block, _ := pem.Decode([]byte(s.Cert)); block != nil {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil {
				if sum := sha256.Sum256(c.Raw); hex.EncodeToString(sum[:]) == fingerprint {
					return fmt.Sprint(s.Name, c.DNSNames)
				}
			}
		}
	}
	return "none"
}

var _ = Describe("Explain over HTTPS", func() {
	It("selects the certificate and the answer that Envoy selects, every time", func(ctx SpecContext) {
		l, all := newLab(ctx), newAuthorities()
		own := all.certificates()
		c := &client{addr: fmt.Sprintf("127.0.0.1:%d", l.port)}
		DeferCleanup(c.close)
		counts, secure := map[string]int{}, map[string]int{}
		var wrong []string
		first, last := seeds(os.Getenv, secureSeeds)
		for seed := first; seed < last; seed++ {
			g := newGenerator(seed, l.backend)
			g.tld = fmt.Sprintf("t%d", seed) // Envoy forgets certificates a moment later
			l.hops, l.minVersion = pick(g, 0, 0, 1), pick(g, "1.2", "1.2", "1.3")
			objects := g.addHTTPS(g.configuration(), all)
			have := stateOf(l.publish(objects))
			l.live()
			c.close()
			for n := range requestsPerSeed {
				r, v := g.secureRequest()
				a, err := explain.Explain(have, r)
				Expect(err).NotTo(HaveOccurred())
				var d string
				if r.TLS {
					secure[a.Code]++
					got, fingerprint, err := sendSecurely(fmt.Sprintf("127.0.0.1:%d", l.https), r, v, own)
					want, answered := expected(a, v)
					switch {
					case (err == nil) != answered:
						d = fmt.Sprintf("explained an answer: %t\nEnvoy did  %+v %v", answered, got, err)
					case err != nil:
					case want != fingerprint:
						d = fmt.Sprintf("explained %s\nEnvoy did  %s", secretOf(objects, want), secretOf(objects, fingerprint))
					default:
						if len(a.Filters) == 0 { // Envoy also sends it with refusals
							got.hsts = ""
						}
						d = disagreement(a, r.Method, got)
					}
				} else {
					counts[a.Code]++
					got, err := c.send(r)
					Expect(err).NotTo(HaveOccurred())
					d = disagreement(a, r.Method, got)
				}
				if d != "" {
					wrong = append(wrong, fmt.Sprintf("seed %d request %d: SNI %q, %+v: %q\n%s\nbecause %s %v", seed, n, r.ServerName, v, bytesOf(r), d, a.Message, a.Steps))
				}
			}
		}
		AddReportEntry("answers", fmt.Sprint("plain ", counts, " secure ", secure))
		if len(wrong) > 0 {
			Fail(fmt.Sprintf("%d disagree (GATEHOUSE_TEST_FIRST_SEED=N GATEHOUSE_TEST_SEEDS=1 repeats one):\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 12)], "\n\n")))
		}
		Expect(secure).To(HaveKey(explain.Misdirected))
		Expect(secure).To(HaveKey(explain.NoCertificate))
		Expect(secure).To(HaveKey(explain.Forwarded))
	})
})
