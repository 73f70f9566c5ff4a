package attack_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// xdsLab is a gateway whose xDS port requires authentication. In addition to the proxy gw, of its own
// Envoy, it has the proxies edge and inner, each with a service and an upstream of that name.
type xdsLab struct {
	target
	// dir is the directory of gatehouse pki.
	dir string
	ca  *x509.Certificate
	key crypto.Signer
	// tokens are by the name of their proxy; "ratelimit" is the engine's, "revoked" is a revoked one of
	// edge.
	tokens map[string]string
}

func startXDSLab(ctx context.Context) *xdsLab {
	GinkgoHelper()
	l := &xdsLab{dir: filepath.Join(GinkgoT().TempDir(), "pki"), tokens: map[string]string{}}
	l.pki("init", l.dir)
	l.pki("issue", l.dir, "server", "--host", "127.0.0.1")
	for _, who := range [][]string{{"proxy", "edge"}, {"proxy", "inner"}, {"proxy", "revoked"}, {"ratelimit"}} {
		l.pki(append([]string{"issue", l.dir}, who...)...)
	}
	l.pki("revoke", l.dir, "revoked.crt")
	block, _ := pem.Decode(l.read("ca.crt"))
	ca, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	block, _ = pem.Decode(l.read("ca.key"))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	l.ca, l.key = ca, key.(crypto.Signer)

	l.target = startTarget(ctx, "--xds-tls-cert", l.path("server.crt"), "--xds-tls-key", l.path("server.key"),
		"--xds-tls-client-ca", l.path("ca.crt"), "--xds-tls-client-crl", l.path("ca.crl"))
	for _, name := range []string{"edge", "inner"} {
		for _, call := range [][]string{
			{"/upstream", "Upstream_name=up-" + name, "Upstream_ip=" + l.blue.IP, "Upstream_port=" + strconv.Itoa(l.blue.Port)},
			{"/service", "Service_Name=" + name, "fqdn=" + name + ".example"},
			{"/service/" + name + "/route", "Route_Name=root", "Route_prefix=/"},
			{"/service/" + name + "/route/root/upstream/up-" + name},
			{"/proxy", "Name=" + name},
			{"/proxy/" + name + "/service/" + name},
		} {
			a, err := l.API.Post(ctx, call[0], call[1:]...)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(201), "POST %q: %s", call, a.Body)
		}
		l.tokens[name] = l.token(ctx, "/proxy/"+name+"/token", "one")
	}
	l.tokens["ratelimit"] = l.token(ctx, "/ratelimit/token", "one")
	l.tokens["revoked"] = l.token(ctx, "/proxy/edge/token", "two")
	a, err := l.API.Delete(ctx, "/proxy/edge/token/two")
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(200), a.Body)
	return l
}

func (l *xdsLab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *xdsLab) read(name string) []byte {
	GinkgoHelper()
	text, err := os.ReadFile(l.path(name))
	Expect(err).NotTo(HaveOccurred())
	return text
}

// pki runs gatehouse pki.
func (l *xdsLab) pki(args ...string) {
	GinkgoHelper()
	program, err := testkit.Binary("gatehouse")
	Expect(err).NotTo(HaveOccurred())
	out, err := exec.Command(program, append([]string{"pki"}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// token creates a token of the xDS port.
func (l *xdsLab) token(ctx context.Context, path, name string) string {
	GinkgoHelper()
	a, err := l.API.Post(ctx, path, "Token_name="+name)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(201), a.Body)
	var made struct{ Token string }
	Expect(json.Unmarshal([]byte(a.Body), &made)).To(Succeed())
	return made.Token
}

// issued returns a pair of gatehouse pki.
func (l *xdsLab) issued(name string) *tls.Certificate {
	GinkgoHelper()
	pair, err := tls.LoadX509KeyPair(l.path(name+".crt"), l.path(name+".key"))
	Expect(err).NotTo(HaveOccurred())
	return &pair
}

// A GeneralName of a certificate (RFC 5280, 4.2.1.6), as it is written there.
type generalName struct {
	tag  int
	text string
}

func uriName(text string) generalName { return generalName{6, text} }
func dnsName(text string) generalName { return generalName{2, text} }

// forged returns a certificate with its own key, by the lab's authority, that differs from a valid one for
// edge only by change; names replace the name of edge.
func (l *xdsLab) forged(change func(*x509.Certificate), names ...generalName) *tls.Certificate {
	GinkgoHelper()
	return forgeCertificate(l.ca, l.key, change, names...)
}

func forgeCertificate(by *x509.Certificate, key crypto.Signer, change func(*x509.Certificate), names ...generalName) *tls.Certificate {
	GinkgoHelper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	if names == nil {
		names = []generalName{uriName("spiffe://gatehouse/proxy/edge")}
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "somebody"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		ExtraExtensions: []pkix.Extension{alternativeNames(names)},
	}
	if change != nil {
		change(template)
	}
	if by == nil { // self-signed
		by, key = template, own
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, own.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	leaf, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own, Leaf: leaf}
}

func alternativeNames(names []generalName) pkix.Extension {
	GinkgoHelper()
	var list []asn1.RawValue
	for _, n := range names {
		list = append(list, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: n.tag, Bytes: []byte(n.text)})
	}
	value, err := asn1.Marshal(list)
	Expect(err).NotTo(HaveOccurred())
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}
}

// tlsConfig returns that of a client that verifies the port, and presents cert if it is not nil, whatever
// authorities the port names.
func (l *xdsLab) tlsConfig(cert *tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(l.ca)
	c := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{"h2"}}
	if cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return c
}

// from returns a dialer of a client on the loopback with an address of its own.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 20 * time.Second}
}

// dial connects with a certificate, unless it is nil, from an address.
func (l *xdsLab) dial(address string, cert *tls.Certificate) *grpc.ClientConn {
	GinkgoHelper()
	conn, err := grpc.NewClient("passthrough:///"+l.XDSAddr, grpc.WithTransportCredentials(credentials.NewTLS(l.tlsConfig(cert))),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return from(address).DialContext(ctx, "tcp", to)
		}))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() }) // it may be closed
	return conn
}

// The calls that a client can make.
const (
	callADS  = "DeltaAggregatedResources"
	callLRS  = "StreamLoadStats"
	callSotW = "StreamAggregatedResources"
)

// ask makes a call under a node id and returns how it ended, or nil if there was a response. Any other call
// than those above is a path, called without streams.
func ask(ctx context.Context, conn *grpc.ClientConn, call, node string, md ...string) *status.Status {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, md...), 30*time.Second)
	defer cancel()
	var err error
	id := &corev3.Node{Id: node}
	switch call {
	case callADS:
		var s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
		if s, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx); err == nil {
			_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: id, TypeUrl: clusterType}) // Recv says what was wrong
			_, err = s.Recv()
		}
	case callLRS:
		var s loadv3.LoadReportingService_StreamLoadStatsClient
		if s, err = loadv3.NewLoadReportingServiceClient(conn).StreamLoadStats(ctx); err == nil {
			_ = s.Send(&loadv3.LoadStatsRequest{Node: id})
			_, err = s.Recv()
		}
	case callSotW:
		var s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
		if s, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx); err == nil {
			_ = s.Send(&discoveryv3.DiscoveryRequest{Node: id, TypeUrl: limitType})
			_, err = s.Recv()
		}
	default:
		err = conn.Invoke(ctx, call, &discoveryv3.DiscoveryRequest{Node: id, TypeUrl: clusterType}, &discoveryv3.DiscoveryResponse{})
	}
	if err == nil {
		return nil
	}
	return status.Convert(err)
}

// refusedFrom returns the reasons in the log records about a client address.
func (l *xdsLab) refusedFrom(address string) (reasons []string) {
	for _, r := range l.Records("xds client refused") {
		if at := fmt.Sprint(r["address"]); strings.HasPrefix(at, address+":") || at == address {
			reasons = append(reasons, fmt.Sprint(r["reason"]))
		}
	}
	return reasons
}

// refusals returns the counter of a reason.
func (l *xdsLab) refusals(ctx context.Context, reason string) int {
	GinkgoHelper()
	return int(metric(ctx, l.target, regexp.QuoteMeta(`gatehouse_xds_refusals_total{reason="`+reason+`"}`)))
}
