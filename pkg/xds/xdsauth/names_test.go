package xdsauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

// san is a subject alternative name as it is written into a certificate, by its class and tag (RFC 5280, 4.2.1.6).
type san struct {
	class, tag int
	text       string
}

func uri(text string) san     { return san{asn1.ClassContextSpecific, 6, text} }
func dns(text string) san     { return san{asn1.ClassContextSpecific, 2, text} }
func email(text string) san   { return san{asn1.ClassContextSpecific, 1, text} }
func integer(text string) san { return san{asn1.ClassUniversal, 2, text} }

// certificateOf makes a certificate with exactly these names; nil if Go cannot parse it, which fails the handshake.
func certificateOf(commonName string, sans ...san) *x509.Certificate {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: commonName}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
	}
	if len(sans) > 0 {
		var list []asn1.RawValue
		for _, s := range sans {
			list = append(list, asn1.RawValue{Class: s.class, Tag: s.tag, Bytes: []byte(s.text)})
		}
		value, err := asn1.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	return cert
}

var _ = DescribeTable("A certificate names", func(commonName string, sans []san, proxies []string, rateLimits bool) {
	cert := certificateOf(commonName, sans...)
	if cert == nil {
		Expect(proxies).To(BeEmpty())
		return
	}
	id, err := xdsauth.IdentityOf(cert)
	Expect(err).NotTo(HaveOccurred())
	Expect([]any{id.Proxies, id.RateLimits, id.Any}).To(Equal([]any{proxies, rateLimits, false}))
},
	Entry("a proxy by URI", "", []san{uri("spiffe://gatehouse/proxy/edge")}, []string{"edge"}, false),
	Entry("a proxy in any trust domain", "", []san{uri("spiffe://prod.example.com/proxy/edge")}, []string{"edge"}, false),
	Entry("a proxy with every allowed character", "", []san{uri("spiffe://gatehouse/proxy/Edge-1.eu_2")}, []string{"Edge-1.eu_2"}, false),
	Entry("a proxy by DNS name", "", []san{dns("edge")}, []string{"edge"}, false),
	Entry("several", "", []san{uri("spiffe://gatehouse/proxy/a"), dns("b"), uri("spiffe://gatehouse/ratelimit")}, []string{"a", "b"}, true),
	Entry("the engine by URI", "", []san{uri("spiffe://gatehouse/ratelimit")}, nil, true),
	Entry("a proxy named like the engine", "", []san{dns("ratelimit")}, []string{"ratelimit"}, false),
	Entry("a proxy named like the engine, by URI", "", []san{uri("spiffe://gatehouse/proxy/ratelimit")}, []string{"ratelimit"}, false),
	Entry("nobody by its common name", "edge", nil, nil, false),
	Entry("nobody by its common name in addition to others", "edge", []san{dns("*.edge")}, nil, false),
	Entry("nobody by a wildcard", "", []san{dns("*")}, nil, false),
	Entry("nobody by an email address", "", []san{email("edge")}, nil, false),
	Entry("nobody by an integer, which has the tag of DNS names", "", []san{integer("edge")}, nil, false),
	Entry("nobody by the name of an engine in a path", "", []san{uri("spiffe://gatehouse/ratelimit/edge")}, nil, false),
	Entry("nobody by a path below a proxy", "", []san{uri("spiffe://gatehouse/proxy/edge/x")}, nil, false),
	Entry("nobody by a path above a proxy", "", []san{uri("spiffe://gatehouse/x/proxy/edge")}, nil, false),
	Entry("nobody by another path", "", []san{uri("spiffe://gatehouse/ns/default/sa/edge")}, nil, false),
	Entry("nobody with an empty path", "", []san{uri("spiffe://gatehouse")}, nil, false),
	Entry("nobody without a name", "", []san{uri("spiffe://gatehouse/proxy/")}, nil, false),
	Entry("nobody with a trailing slash", "", []san{uri("spiffe://gatehouse/proxy/edge/")}, nil, false),
	Entry("nobody with an empty segment", "", []san{uri("spiffe://gatehouse//proxy/edge")}, nil, false),
	Entry("nobody with dots as a name", "", []san{uri("spiffe://gatehouse/proxy/.."), uri("spiffe://gatehouse/proxy/."), dns("..")}, nil, false),
	Entry("nobody by a path with dot segments", "", []san{uri("spiffe://gatehouse/proxy/x/../edge")}, nil, false),
	Entry("nobody by percent-encoding", "", []san{uri("spiffe://gatehouse/proxy/%65dge")}, nil, false),
	Entry("nobody with an encoded slash", "", []san{uri("spiffe://gatehouse/proxy%2Fedge")}, nil, false),
	Entry("nobody with an encoded NUL", "", []san{uri("spiffe://gatehouse/proxy/edge%00")}, nil, false),
	Entry("nobody with a query", "", []san{uri("spiffe://gatehouse/proxy/edge?x=1")}, nil, false),
	Entry("nobody with an empty query", "", []san{uri("spiffe://gatehouse/proxy/edge?")}, nil, false),
	Entry("nobody with a fragment", "", []san{uri("spiffe://gatehouse/proxy/edge#x")}, nil, false),
	Entry("nobody with an empty fragment", "", []san{uri("spiffe://gatehouse/proxy/edge#")}, nil, false),
	Entry("nobody with a user", "", []san{uri("spiffe://user@gatehouse/proxy/edge")}, nil, false),
	Entry("nobody with a port", "", []san{uri("spiffe://gatehouse:1/proxy/edge")}, nil, false),
	Entry("nobody without a trust domain", "", []san{uri("spiffe:///proxy/edge")}, nil, false),
	Entry("nobody with a trust domain in upper case", "", []san{uri("spiffe://Gatehouse/proxy/edge")}, nil, false),
	Entry("nobody with a scheme in upper case", "", []san{uri("SPIFFE://gatehouse/proxy/edge")}, nil, false),
	Entry("nobody with another scheme", "", []san{uri("https://gatehouse/proxy/edge")}, nil, false),
	Entry("nobody with a path in another letter case", "", []san{uri("spiffe://gatehouse/Proxy/edge")}, nil, false),
	Entry("nobody with a trailing line break", "", []san{uri("spiffe://gatehouse/proxy/edge\n"), dns("edge\n")}, nil, false),
	Entry("nobody with a NUL", "", []san{dns("edge\x00.example")}, nil, false),
	Entry("nobody with a leading space", "", []san{dns(" edge")}, nil, false),
	Entry("nobody with a name that is too long", "", []san{dns(strings.Repeat("a", 254))}, nil, false),
)

var _ = DescribeTable("A client with a certificate is called by", func(want string, sans ...san) {
	Expect(xdsauth.IdentityOf(certificateOf("laptop", sans...))).To(HaveField("Name", "certificate "+want))
},
	Entry("no name", "without a name"),
	Entry("no email address", "without a name", email("edge")),
	Entry("the only name, which is for nobody", "*.mesh", dns("*.mesh")),
	Entry("the only URI, which is for nobody", "https://mesh/edge", uri("https://mesh/edge")),
	Entry("the first name, if all are for nobody", "*.a", dns("*.a"), dns("*.b"), uri("https://mesh/edge")),
	Entry("the first that names a proxy", "edge", dns("*.mesh"), dns("edge"), dns("other")),
	Entry("the first that names a proxy by URI", "spiffe://gatehouse/proxy/edge", dns("*.mesh"), uri("spiffe://gatehouse/proxy/edge"), dns("other")),
	Entry("the first that names the engine", "spiffe://gatehouse/ratelimit", dns("*.mesh"), uri("spiffe://gatehouse/ratelimit"), dns("edge")),
)
