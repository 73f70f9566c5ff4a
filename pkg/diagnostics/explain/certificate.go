package explain

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Certificate is a certificate for a host name.
type Certificate struct {
	// Secret contains the certificate. Service is the service that the secret is
	// attached to.
	Secret  string `json:"secret"`
	Service string `json:"service,omitempty"`
	// Kind is exact if the certificate names the host name itself, wildcard if a
	// wildcard covers it, and default for clients that send no name.
	Kind string `json:"kind"`
	// Names are the DNS names in the certificate.
	Names []string `json:"names"`
	// KeyType is RSA or ECDSA.
	KeyType string `json:"key_type"`
	// NotAfter is when the certificate expires.
	NotAfter time.Time `json:"not_after"`
	// Fingerprint is the SHA-256 of the certificate, in hex.
	Fingerprint string `json:"fingerprint"`
	// Source is where it comes from, Host the host of one that the gateway orders, and DaysLeft how long it lasts. Error and
	// Advice are why the last attempt to order one failed, and what to do. Whoever knows sets them.
	Source   string `json:"source,omitempty"`
	Host     string `json:"host,omitempty"`
	DaysLeft int    `json:"days_left"`
	Error    string `json:"error,omitempty"`
	Advice   string `json:"advice,omitempty"`
	// Message explains why this certificate is served, or why another one is.
	Message string `json:"message"`

	// name is the name under which it is found. rank is the rank of its service's host.
	name string
	rank int
}

// These are the kinds of a certificate in addition to exact.
const (
	wildcard = "wildcard"
	unnamed  = "default"
)

// The sources of certificates.
const (
	FromSecret      = "secret"
	FromFile        = "file"
	FromAuthority   = "automatic"
	FromPlaceholder = "placeholder"
)

func (c Certificate) sentence() string {
	if host, is := model.AutomaticHost(c.Secret); is {
		return fmt.Sprintf("the automatic certificate for %s of service %s %s", host, c.Service, c.Message)
	}
	of := ""
	if c.Service != "" {
		of = " of service " + c.Service
	}
	return fmt.Sprintf("the certificate of secret %s%s %s", c.Secret, of, c.Message)
}

// choose sets the certificates for a server name.
func (t *TLS) choose(have State, name string, common *tlsv3.CommonTlsContext) error {
	candidates, err := candidatesOf(have, name)
	if err != nil {
		return err
	}
	if named := common.GetTlsCertificateSdsSecretConfigs(); len(named) > 0 {
		return t.chooseNamed(have, name, named, candidates)
	}
	if len(candidates) == 0 {
		return nil
	}
	best := candidates[0]
	best.Message = "answers: it " + best.covers(name)
	t.Certificates = []Certificate{best}
	for _, c := range candidates[1:] {
		if !slices.ContainsFunc(t.Others, func(o Certificate) bool { return o.Secret == c.Secret && o.Service == c.Service }) &&
			(c.Secret != best.Secret || c.Service != best.Service) {
			c.Message = c.covers(name) + " too, but " + best.beats(c)
			t.Others = append(t.Others, c)
		}
	}
	return nil
}

// candidatesOf returns the certificates that match a server name. The first one wins.
func candidatesOf(have State, name string) ([]Certificate, error) {
	if have.Certificates == nil {
		return nil, nil
	}
	asked := name
	if asked == "" {
		asked = snapshot.DefaultCertificate
	}
	var list []Certificate
	for _, found := range have.Certificates(asked) {
		r := found.Resource()
		c, err := readCertificate(found.Pair(), name)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate of secret %q: %w", objectName(r, "secret"), err)
		}
		c.Secret, c.Service, c.name, c.rank = objectName(r, "secret"), objectName(r, "service"), found.Name, found.Rank
		list = append(list, c)
	}
	return list, nil
}

// covers describes how the certificate matches a name.
func (c Certificate) covers(name string) string {
	switch c.Kind {
	case unnamed:
		return "is for clients that name no host"
	case exact:
		return "is for " + name
	}
	return "covers " + name + " with " + wildcardOf(name)
}

// beats explains why a certificate is served in place of another one for the name.
func (c Certificate) beats(other Certificate) string {
	switch {
	case c.name != other.name:
		return fmt.Sprintf("service %s serves the name itself", c.Service)
	case c.Service != other.Service && c.rank != other.rank:
		return fmt.Sprintf("service %s has the more exact host", c.Service)
	case c.Service != other.Service:
		return fmt.Sprintf("service %s is the older one", c.Service)
	case c.Kind != other.Kind:
		return fmt.Sprintf("secret %s names it itself", c.Secret)
	}
	return fmt.Sprintf("secret %s is valid for longer", c.Secret)
}

// chooseNamed sets the certificates of a filter chain that names them. The client's
// algorithms decide (DefaultTlsCertificateSelector).
func (t *TLS) chooseNamed(have State, name string, named []*tlsv3.SdsSecretConfig, candidates []Certificate) error {
	var all []Certificate
	for _, n := range named {
		r := findResource(have.Secrets, n.GetName())
		if r == nil {
			continue // Envoy then waits for it, and the listener is not open yet
		}
		var secret tlsv3.Secret
		if err := r.Body.UnmarshalTo(&secret); err != nil {
			return fmt.Errorf("decoding secret %q: %w", n.GetName(), err)
		}
		c, err := readCertificate(secret.GetTlsCertificate(), name)
		if err != nil {
			return fmt.Errorf("reading the certificate of secret %q: %w", n.GetName(), err)
		}
		c.Secret = objectOf(have, n.GetName())
		if i := slices.IndexFunc(candidates, func(o Certificate) bool { return o.Secret == c.Secret }); i >= 0 {
			c.Service = candidates[i].Service
		}
		all = append(all, c)
	}
	shown := selectNamed(all, name)
	for _, keyType := range []string{"ECDSA", "RSA"} {
		if i, ok := shown[keyType]; ok {
			c := all[i]
			c.Message = fmt.Sprintf("answers clients that accept %s: it %s", keyType, c.covers(name))
			if keyType == "RSA" && len(shown) > 1 {
				c.Message = "answers clients that accept RSA only: it " + c.covers(name)
			}
			t.Certificates = append(t.Certificates, c)
		}
	}
	for _, c := range candidates {
		if len(t.Certificates) > 0 && !slices.ContainsFunc(t.Certificates, func(o Certificate) bool { return o.Secret == c.Secret }) {
			c.Message = c.covers(name) + " too, but secret " + t.Certificates[0].Secret + " has precedence"
			t.Others = append(t.Others, c)
		}
	}
	return nil
}

// selectNamed returns the index of the certificate for each type of key. It tries the
// name itself, then its wildcard, then the first certificate of all; the first kind with
// a match decides. Names are compared in the letter case of the client.
func selectNamed(all []Certificate, name string) map[string]int {
	shown := map[string]int{}
	for _, wanted := range []string{name, wildcardOf(name)} {
		for i, c := range all {
			if _, have := shown[c.KeyType]; !have && wanted != "" && slices.Contains(c.Names, wanted) {
				shown[c.KeyType] = i
			}
		}
		if len(shown) > 0 {
			return shown
		}
	}
	if len(all) > 0 {
		shown[all[0].KeyType] = 0
	}
	return shown
}

// wildcardOf returns the wildcard that covers a name.
func wildcardOf(name string) string {
	if _, parent, ok := strings.Cut(name, "."); ok && parent != "" {
		return "*." + parent
	}
	return ""
}

var errNoCertificate = errors.New("it is not a PEM certificate")

// readCertificate describes the leaf certificate of a pair for a server name.
func readCertificate(pair *tlsv3.TlsCertificate, name string) (Certificate, error) {
	block, _ := pem.Decode([]byte(pair.GetCertificateChain().GetInlineString()))
	if block == nil {
		return Certificate{}, errNoCertificate
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Certificate{}, err
	}
	sum := sha256.Sum256(leaf.Raw)
	c := Certificate{
		Kind: wildcard, Names: leaf.DNSNames, KeyType: leaf.PublicKeyAlgorithm.String(), NotAfter: leaf.NotAfter, Fingerprint: hex.EncodeToString(sum[:]),
	}
	if c.Names == nil {
		c.Names = []string{}
	}
	switch {
	case name == "":
		c.Kind = unnamed
	case slices.ContainsFunc(leaf.DNSNames, func(n string) bool { return strings.EqualFold(n, name) }):
		c.Kind = exact
	}
	return c, nil
}
