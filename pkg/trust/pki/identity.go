package pki

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// TrustDomain is the authority of the SPIFFE IDs that are issued. The xDS port
// accepts every trust domain.
const TrustDomain = "gatehouse"

// Purpose is what a certificate is used for.
type Purpose string

// The purposes.
const (
	// Server is for control planes: their Envoys verify it.
	Server Purpose = "server"
	// Proxy is for the Envoys of a proxy: the control plane verifies it.
	Proxy Purpose = "proxy"
	// RateLimit is for the rate-limit engine: the control plane verifies it.
	RateLimit Purpose = "ratelimit"
)

// Purposes lists them.
func Purposes() []string { return []string{string(Server), string(Proxy), string(RateLimit)} }

// Identity is whom a certificate is for.
type Identity struct {
	Purpose Purpose
	// Name is the name of the proxy; only Proxy has one.
	Name string
	// Hosts are the DNS names and IP addresses under which Envoys reach a server;
	// only Server has them.
	Hosts []string
}

func (i Identity) String() string {
	if i.Purpose == Proxy {
		return "proxy " + i.Name
	}
	return string(i.Purpose)
}

// names returns the alternative names of a certificate for i.
func (i Identity) names() []string {
	switch i.Purpose {
	case Proxy:
		return []string{"spiffe://" + TrustDomain + "/proxy/" + i.Name}
	case RateLimit:
		return []string{"spiffe://" + TrustDomain + "/ratelimit"}
	}
	return i.Hosts
}

// file returns the default name of its files, without .crt and .key.
func (i Identity) file() string { return cmp.Or(i.Name, string(i.Purpose)) }

// equal reports whether both have the same purpose and names.
func (i Identity) equal(other Identity) bool {
	return i.Purpose == other.Purpose && i.Name == other.Name &&
		slices.Equal(slices.Sorted(slices.Values(i.Hosts)), slices.Sorted(slices.Values(other.Hosts)))
}

// NewIdentity returns the identity of a purpose, with the name of a proxy or the hosts
// of a server. Host names are converted to lower case, and duplicates are removed. A
// server may have no hosts here: if its certificate is issued again, it keeps its
// hosts.
func NewIdentity(purpose, name string, hosts []string) (Identity, error) {
	i := Identity{Purpose: Purpose(purpose), Name: name}
	switch i.Purpose {
	case Server, RateLimit:
		if name != "" {
			return i, fmt.Errorf("%q is not expected: only a proxy has a name", name)
		}
	case Proxy:
		if err := checkName("the proxy", name); err != nil {
			return i, err
		}
	default:
		return i, fmt.Errorf("%q is not one of %s", purpose, strings.Join(Purposes(), ", "))
	}
	if i.Purpose != Server && len(hosts) > 0 {
		return i, errors.New("--host is for a server: an Envoy and a rate-limit engine are known by their name, " +
			"wherever they run")
	}
	for _, given := range hosts {
		host, err := parseHost(given)
		if err != nil {
			return i, err
		}
		if !slices.Contains(i.Hosts, host) {
			i.Hosts = append(i.Hosts, host)
		}
	}
	return i, nil
}

// checkName checks rest-api.md, "Names".
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s needs a name", what)
	case len(name) > 253:
		return fmt.Errorf("the name of %s has %d bytes; at most 253 are allowed", what, len(name))
	case strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("._-", r) }):
		return fmt.Errorf("%s %q: a name may contain only the characters A-Z a-z 0-9 . _ -", what, name)
	case name == "." || name == "..":
		return fmt.Errorf("%s cannot have the name %q", what, name)
	}
	return nil
}

// checkFile checks the name of the files of i, without .crt and .key.
func checkFile(base string, i Identity, chosen bool) error {
	const remedy = "choose another name for the files with --file NAME"
	if err := checkName("--file", base); chosen && err != nil {
		return err
	}
	switch {
	case len(base) > 240:
		return fmt.Errorf("the name of the files would have %d bytes, which is more than a file system allows (%s)",
			len(base), remedy)
	case base == "ca":
		return fmt.Errorf("the files ca.crt and ca.key are those of the authority (%s)", remedy)
	case base != string(i.Purpose) && (base == string(Server) || base == string(RateLimit)):
		return fmt.Errorf("the files %s.crt and %s.key are for the certificate of the %s (%s)", base, base, base, remedy)
	}
	return nil
}

// parseHost returns an IP address, or a DNS name in lower case.
func parseHost(given string) (string, error) {
	bad := func(why string) (string, error) { return "", fmt.Errorf("--host %q %s", given, why) }
	if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(given, "["), "]")); err == nil {
		switch {
		case ip.Zone() != "":
			return bad("has a zone; give the address without it")
		case ip.IsUnspecified():
			return bad("is an address to listen on; give the names and addresses under which Envoys reach the server")
		}
		return ip.Unmap().String(), nil
	}
	name := strings.ToLower(given)
	switch {
	case name == "":
		return bad("is empty; give a DNS name or an IP address")
	case strings.Contains(name, "/"):
		return bad("is neither a DNS name nor an IP address; give the host alone")
	case strings.Contains(name, ":"):
		return bad("has a port; give the host alone")
	case strings.ContainsFunc(name, func(r rune) bool { return r > 127 }):
		return bad("has letters beyond ASCII; give its form in DNS, which begins with xn--")
	case strings.HasSuffix(name, "."):
		return bad("ends with a dot; leave it out, as Envoys do")
	case !isDNSName(strings.TrimPrefix(name, "*.")):
		return bad("is neither a DNS name nor an IP address")
	case strings.HasPrefix(name, "*.") && strings.Count(name, ".") < 2:
		return bad("would be for every host of a top-level domain")
	}
	return name, nil
}

// isDNSName allows underscores, which container networks have in host names.
func isDNSName(name string) bool {
	if len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' }) {
			return false
		}
	}
	// Only digits and dots are a mistyped address.
	return strings.ContainsFunc(labels[len(labels)-1], func(r rune) bool { return r < '0' || r > '9' })
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// identityOf reads the identity of a certificate that Issue made.
func identityOf(cert *x509.Certificate) (Identity, bool) {
	if slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
		i := Identity{Purpose: Server, Hosts: slices.Clone(cert.DNSNames)}
		for _, ip := range cert.IPAddresses {
			i.Hosts = append(i.Hosts, ip.String())
		}
		return i, true
	}
	if len(cert.URIs) != 1 || cert.URIs[0].Host != TrustDomain {
		return Identity{}, false
	}
	if name, ok := strings.CutPrefix(cert.URIs[0].Path, "/proxy/"); ok {
		return Identity{Purpose: Proxy, Name: name}, true
	}
	return Identity{Purpose: RateLimit}, cert.URIs[0].Path == "/ratelimit"
}

// addNames puts the names of i into a certificate.
func addNames(cert *x509.Certificate, i Identity) error {
	for _, name := range i.names() {
		if i.Purpose != Server {
			uri, err := url.Parse(name)
			if err != nil {
				return err
			}
			cert.URIs = append(cert.URIs, uri)
		} else if ip := net.ParseIP(name); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, name)
		}
	}
	return nil
}
