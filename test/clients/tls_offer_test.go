package clients_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// scan finds out what a server accepts, as testssl.sh does: it offers everything, and
// leaves out what the server has chosen, until the server refuses.
type scan struct {
	ctx        context.Context
	addr, host string
	table      strings.Builder
}

func (s *scan) row(what, format string, args ...any) {
	fmt.Fprintf(&s.table, "%-26s %s\n", what, fmt.Sprintf(format, args...))
}

func (s *scan) send(h testkit.ClientHello) testkit.ServerHello {
	GinkgoHelper()
	a, err := h.Send(s.ctx, s.addr)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// hello returns one in a version, with everything that clients support.
func (s *scan) hello(version uint16) testkit.ClientHello {
	h := testkit.ClientHello{Version: version, ServerNames: []string{s.host}, Ciphers: []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	}, Groups: groups()}
	if version == tls.VersionTLS13 {
		h.Version, h.Versions = tls.VersionTLS12, []uint16{tls.VersionTLS13}
		h.Ciphers = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}
	}
	return h
}

// groups returns all groups of IANA's registry (TLS Supported Groups): elliptic curves,
// finite fields, and those with ML-KEM.
func groups() []uint16 {
	list := []uint16{0x200, 0x201, 0x202, 0x11eb, 0x11ec, 0x11ed, 0x6399, 0x639a, 0xff01, 0xff02}
	for g := range uint16(42) {
		list = append(list, g+1)
	}
	for g := range uint16(5) {
		list = append(list, 256+g)
	}
	return list
}

func groupName(group uint16) string {
	known := map[uint16]string{0x11ec: "X25519MLKEM768", 29: "x25519", 23: "P-256", 24: "P-384"}
	if name, ok := known[group]; ok {
		return name
	}
	return fmt.Sprintf("%#04x", group)
}

// refusal describes how a server refuses.
func refusal(a testkit.ServerHello) string {
	known := map[byte]string{40: "handshake_failure", 47: "illegal_parameter", 70: "protocol_version", 86: "inappropriate_fallback"}
	switch {
	case a.Closed:
		return "refused (closed)"
	case known[a.Alert] != "":
		return "refused (" + known[a.Alert] + ")"
	}
	return fmt.Sprintf("refused (alert %d)", a.Alert)
}

// chosen returns the ciphers that the server accepts, of all possible numbers, in its
// order; if there are none, how it refuses.
func (s *scan) chosen(version uint16) (list []uint16, refused string) {
	GinkgoHelper()
	const part = 4096
	for first := 0; first < 1<<16; first += part {
		h := s.hello(version)
		h.Ciphers = nil
		for c := first; c < first+part; c++ {
			if c != 0x5600 { // TLS_FALLBACK_SCSV is no cipher, see below
				h.Ciphers = append(h.Ciphers, uint16(c)) //nolint:gosec // below 1<<16
			}
		}
		for {
			a := s.send(h)
			if !a.Accepted() {
				refused = refusal(a)
				break
			}
			Expect(a.Version).To(Equal(version))
			list = append(list, a.Cipher)
			h.Ciphers = slices.DeleteFunc(h.Ciphers, func(c uint16) bool { return c == a.Cipher })
		}
	}
	return list, refused
}

// versions adds the rows of the versions and their ciphers.
func (s *scan) versions() {
	GinkgoHelper()
	for _, v := range []struct {
		name    string
		version uint16
	}{
		{"SSL 3.0", 0x0300}, {"TLS 1.0", tls.VersionTLS10}, {"TLS 1.1", tls.VersionTLS11}, {"TLS 1.2", tls.VersionTLS12}, {"TLS 1.3", tls.VersionTLS13},
	} {
		list, refused := s.chosen(v.version)
		if len(list) == 0 {
			s.row(v.name, "%s", refused)
			continue
		}
		if v.version == tls.VersionTLS13 {
			slices.Sort(list) // the order is not Gatehouse's, and differs from processor to processor
		}
		s.row(v.name, "offered")
		for _, c := range list {
			name, secrecy := tls.CipherSuiteName(c), "no forward secrecy"
			if v.version == tls.VersionTLS13 || strings.HasPrefix(name, "TLS_ECDHE_") {
				secrecy = "forward secrecy"
			}
			s.row("", "%-47s %s", name, secrecy)
		}
		h := s.hello(v.version)
		var names []string
		for a := s.send(h); a.Accepted(); a = s.send(h) {
			names = append(names, groupName(a.Group))
			h.Groups = slices.DeleteFunc(h.Groups, func(g uint16) bool { return g == a.Group })
		}
		s.row("", "keys: %s", strings.Join(names, ", "))
	}
}

// rest adds what a TLS 1.2 server sends unencrypted in addition to version and cipher.
func (s *scan) rest() {
	GinkgoHelper()
	h := s.hello(tls.VersionTLS12)
	h.Compressions = []byte{1, 0}
	h.Extensions = map[uint16][]byte{5: {1, 0, 0, 0, 0}, 15: {1}, 18: nil, 22: nil, 23: nil, 35: nil, 13172: nil, 0xff01: {0}}
	a := s.send(h)
	if !a.Accepted() {
		return
	}
	s.row("compression", "%s", map[byte]string{0: "off", 1: "DEFLATE"}[a.Compression])
	s.row("session ID", "%s", map[bool]string{true: "off", false: "on"}[a.SessionID == 0])
	for _, e := range []struct {
		kind uint16
		name string
	}{
		{35, "session ticket"}, {5, "OCSP stapling"}, {18, "certificate timestamps"}, {15, "heartbeat"}, {13172, "NPN"},
		{22, "encrypt-then-MAC"}, {23, "extended master secret"}, {0xff01, "secure renegotiation"},
	} {
		_, on := a.Extensions[e.kind]
		s.row(e.name, "%s", map[bool]string{true: "on", false: "off"}[on])
	}
	for _, protocols := range [][]string{{"h2", "http/1.1"}, {"http/1.1", "h2"}, {"http/1.1"}, {"h2"}, {"spdy/3.1"}} {
		h := s.hello(tls.VersionTLS12)
		h.ALPN = protocols
		a, got := s.send(h), ""
		switch e := a.Extensions[16]; {
		case !a.Accepted():
			got = refusal(a)
		case len(e) > 3:
			got = string(e[3:])
		default:
			got = "none"
		}
		s.row("ALPN "+strings.Join(protocols, ","), "%s", got)
	}
}

// odd adds the answers to what no correct client does.
func (s *scan) odd() {
	GinkgoHelper()
	for _, o := range []struct {
		name   string
		change func(*testkit.ClientHello)
	}{
		{"TLS_FALLBACK_SCSV", func(h *testkit.ClientHello) { h.Ciphers = append(h.Ciphers, 0x5600) }},
		{"only DEFLATE", func(h *testkit.ClientHello) { h.Compressions = []byte{1} }},
		{"a later TLS 1.9, and 1.3", func(h *testkit.ClientHello) { h.Versions = []uint16{0x030a, tls.VersionTLS13} }},
		{"20,000 bytes of padding", func(h *testkit.ClientHello) { h.Extensions = map[uint16][]byte{21: make([]byte, 20000)} }},
		{"no server name", func(h *testkit.ClientHello) { h.ServerNames = nil }},
		{"an unknown server name", func(h *testkit.ClientHello) { h.ServerNames = []string{"other.test"} }},
	} {
		h := s.hello(tls.VersionTLS12)
		h.Ciphers = append(h.Ciphers, tls.TLS_AES_128_GCM_SHA256)
		o.change(&h)
		a := s.send(h)
		if a.Accepted() {
			s.row(o.name, "%s", tls.VersionName(a.Version))
		} else {
			s.row(o.name, "%s", refusal(a))
		}
	}
}

// resumption reports whether a second connection resumes the session of the first.
func (s *scan) resumption(roots *testkit.Authority) {
	GinkgoHelper()
	config := &tls.Config{ServerName: s.host, RootCAs: roots.Pool(), MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(2)}
	resumed := false
	for range 2 {
		conn, err := testkit.Bounded((&tls.Dialer{Config: config}).DialContext(s.ctx, "tcp", s.addr))
		Expect(err).NotTo(HaveOccurred())
		_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", s.host)
		Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(conn) // tickets come with it
		Expect(err).NotTo(HaveOccurred())
		resumed = resumed || conn.(*tls.Conn).ConnectionState().DidResume
		Expect(conn.Close()).To(Succeed())
	}
	s.row("resumption, by Go", "%s", map[bool]string{true: "on", false: "off"}[resumed])
}

// renegotiation reports what the server does when openssl s_client requests another
// handshake on an existing connection.
func (s *scan) renegotiation() {
	GinkgoHelper()
	cmd := exec.CommandContext(s.ctx, "openssl", "s_client", "-connect", s.addr, "-servername", s.host, "-tls1_2")
	stdin, err := cmd.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	cmd.WaitDelay = 10 * time.Second
	_, err = io.WriteString(stdin, "R\n") // the pipe stays open, otherwise it would exit
	Expect(err).NotTo(HaveOccurred())
	out, err := cmd.CombinedOutput()
	Expect(err).To(HaveOccurred(), "openssl ends with 1 if it is refused: %s", out)
	Expect(string(out)).To(ContainSubstring("RENEGOTIATING"))
	if strings.Contains(string(out), "no renegotiation") {
		s.row("renegotiation, by openssl", "refused (no_renegotiation)")
	} else {
		s.row("renegotiation, by openssl", "%s", out)
	}
}

var _ = Describe("The HTTPS listener offers", func() {
	// table returns what a gateway with a minimum version offers for a host with an RSA
	// and an ECDSA certificate.
	table := func(ctx context.Context, version string) string {
		GinkgoHelper()
		s := secure(ctx, "Tls_min_version="+version)
		found := &scan{ctx: ctx, addr: s.addr, host: "both.test"}
		found.versions()
		found.rest()
		found.odd()
		found.resumption(s.authority)
		if version == "1.2" {
			found.renegotiation()
		}
		AddReportEntry("Tls_min_version "+version, ReportEntryVisibilityAlways, "\n"+found.table.String())
		return found.table.String()
	}

	It("TLS 1.2 with ciphers that have forward secrecy, and TLS 1.3", func(ctx SpecContext) {
		Expect(table(ctx, "1.2")).To(Equal(`SSL 3.0                    refused (closed)
TLS 1.0                    refused (protocol_version)
TLS 1.1                    refused (protocol_version)
TLS 1.2                    offered
                           TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256         forward secrecy
                           TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256   forward secrecy
                           TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384         forward secrecy
                           TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256           forward secrecy
                           TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256     forward secrecy
                           TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384           forward secrecy
                           keys: x25519, P-256, P-384
TLS 1.3                    offered
                           TLS_AES_128_GCM_SHA256                          forward secrecy
                           TLS_AES_256_GCM_SHA384                          forward secrecy
                           TLS_CHACHA20_POLY1305_SHA256                    forward secrecy
                           keys: X25519MLKEM768, x25519, P-256, P-384
compression                off
session ID                 off
session ticket             off
OCSP stapling              off
certificate timestamps     off
heartbeat                  off
NPN                        off
encrypt-then-MAC           off
extended master secret     on
secure renegotiation       on
ALPN h2,http/1.1           h2
ALPN http/1.1,h2           h2
ALPN http/1.1              http/1.1
ALPN h2                    h2
ALPN spdy/3.1              none
TLS_FALLBACK_SCSV          refused (inappropriate_fallback)
only DEFLATE               refused (illegal_parameter)
a later TLS 1.9, and 1.3   TLS 1.3
20,000 bytes of padding    refused (closed)
no server name             refused (handshake_failure)
an unknown server name     refused (handshake_failure)
resumption, by Go          off
renegotiation, by openssl  refused (no_renegotiation)
`))
	}, SpecTimeout(3*time.Minute))

	It("only TLS 1.3, if Tls_min_version says so", func(ctx SpecContext) {
		Expect(table(ctx, "1.3")).To(Equal(`SSL 3.0                    refused (closed)
TLS 1.0                    refused (protocol_version)
TLS 1.1                    refused (protocol_version)
TLS 1.2                    refused (protocol_version)
TLS 1.3                    offered
                           TLS_AES_128_GCM_SHA256                          forward secrecy
                           TLS_AES_256_GCM_SHA384                          forward secrecy
                           TLS_CHACHA20_POLY1305_SHA256                    forward secrecy
                           keys: X25519MLKEM768, x25519, P-256, P-384
TLS_FALLBACK_SCSV          refused (protocol_version)
only DEFLATE               refused (protocol_version)
a later TLS 1.9, and 1.3   TLS 1.3
20,000 bytes of padding    refused (closed)
no server name             refused (handshake_failure)
an unknown server name     refused (handshake_failure)
resumption, by Go          off
`))
	}, SpecTimeout(3*time.Minute))
})
