package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// Certificate is the secret that an Envoy receives when it requests the certificate of
// a host name, during a client's handshake.
type Certificate struct {
	// Name is an exact host name in lower case, or "*.suffix" for one more label, or
	// what Envoy requests when a client sends no host name.
	Name string
	// Rank decides among several certificates for one name: the lowest wins.
	Rank int

	secret   *tlsv3.Secret
	resource *Resource // under Name
}

// NewCertificate makes a certificate from a secret with the certificate's name. The
// secret must be valid for Envoy.
func NewCertificate(s *tlsv3.Secret, rank int, objects ...ObjectRef) (*Certificate, error) {
	r, err := NewSecret(s, objects...)
	return &Certificate{Name: s.GetName(), Rank: rank, secret: s, resource: r}, err
}

// Pair returns the certificate with its key. Callers must not change it.
func (c *Certificate) Pair() *tlsv3.TlsCertificate { return c.secret.GetTlsCertificate() }

// Resource is what an Envoy receives that requests Name.
func (c *Certificate) Resource() *Resource { return c.resource }

// Certificates returns the certificates of the hosts that are served, sorted by name.
// Callers must not change them.
func (b *Builder) Certificates() []*Certificate { return b.certificates.all() }

// DefaultCertificate is what an Envoy requests when a client sends no host name.
const DefaultCertificate = "default/"

// certificateKey returns the key by which certificates are sorted.
func certificateKey(c *Certificate) string { return c.Name }

// Certificate returns the secret for what an Envoy requests: a name as the client
// wrote it. Nil means that there is none. pattern is the name of the certificate.
func (s *Snapshot) Certificate(asked string) (r *Resource, pattern string) {
	for _, pattern := range patternsOf(asked) {
		i, found := search(s.Certificates, pattern, certificateKey)
		if !found {
			continue
		}
		c := s.Certificates[i]
		if asked == c.Name {
			return c.resource, pattern
		}
		secret := proto.CloneOf(c.secret)
		secret.Name = asked
		r, err := NewSecret(secret, c.resource.Objects...)
		if err != nil {
			return nil, "" // a client's name cannot make it invalid, and there is no certificate if it is
		}
		return r, pattern
	}
	return nil, ""
}

// patternsOf returns the names that a certificate for the requested name may have, the
// best first.
func patternsOf(asked string) []string {
	name := strings.ToLower(asked)
	_, parent, _ := strings.Cut(name, ".")
	return []string{name, "*." + parent}
}

// Candidates returns all certificates for the requested name, in the order in which
// they win. The first is what Certificate returns.
func (s *Snapshot) Candidates(asked string) []*Certificate {
	var list []*Certificate
	for _, pattern := range patternsOf(asked) {
		if i, found := search(s.Certificates, pattern, certificateKey); found {
			list = append(append(list, s.Certificates[i]), s.Beaten[pattern]...)
		}
	}
	return list
}

// CertificateNames returns, by the name of the secret object, the names for which
// secrets have a certificate. A name counts even if another certificate wins for it.
func (s *Snapshot) CertificateNames(secrets map[string]bool) map[string][]string {
	names := map[string][]string{}
	add := func(c *Certificate) {
		for _, o := range c.resource.Objects {
			if o.Kind == "secret" && secrets[o.Name] && !slices.Contains(names[o.Name], c.Name) {
				names[o.Name] = append(names[o.Name], c.Name)
			}
		}
	}
	for _, c := range s.Certificates {
		add(c)
		for _, b := range s.Beaten[c.Name] {
			add(b)
		}
	}
	return names
}

// certificates are the certificates of a builder's hosts, by name.
type certificates struct {
	byName  map[string][]ranked
	changed map[string]*Certificate
	sorted  []*Certificate
	// beaten are the certificates that lose to another one for their name, in the
	// order in which they win. Snapshots share the map, so it is never modified.
	beaten map[string][]*Certificate
}

// ranked is a certificate with the order of its host.
type ranked struct {
	*Certificate
	order int64
}

func newCertificates() *certificates {
	return &certificates{byName: map[string][]ranked{}, changed: map[string]*Certificate{}}
}

func (c *certificates) add(p *Parts) {
	for _, cert := range p.Certificates {
		c.byName[cert.Name] = append(c.byName[cert.Name], ranked{cert, p.Order})
		c.choose(cert.Name)
	}
}

func (c *certificates) drop(p *Parts) {
	for _, cert := range p.Certificates {
		c.byName[cert.Name] = slices.DeleteFunc(c.byName[cert.Name], func(r ranked) bool { return r.Certificate == cert })
		c.choose(cert.Name)
	}
}

func (c *certificates) choose(name string) {
	list := c.byName[name]
	if len(list) == 0 {
		delete(c.byName, name)
		c.changed[name] = nil
		c.setBeaten(name, nil)
		return
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.order, b.order))
	})
	c.changed[name] = list[0].Certificate
	c.setBeaten(name, list[1:])
}

func (c *certificates) setBeaten(name string, list []ranked) {
	if len(list) == 0 && c.beaten[name] == nil {
		return
	}
	beaten := maps.Clone(c.beaten)
	delete(beaten, name)
	for _, r := range list {
		if beaten == nil {
			beaten = map[string][]*Certificate{}
		}
		beaten[name] = append(beaten[name], r.Certificate)
	}
	c.beaten = beaten
}

// all returns the certificates, sorted by name, one for each name.
func (c *certificates) all() []*Certificate {
	if len(c.changed) > 0 {
		c.sorted = merge(c.sorted, c.changed, certificateKey)
		c.changed = map[string]*Certificate{}
	}
	return c.sorted
}
