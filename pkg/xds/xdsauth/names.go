package xdsauth

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// names are the identities in a certificate.
type names struct {
	proxies    []string
	rateLimits bool
	// san is the first subject alternative name with an identity; if there is none, it is the first of all.
	san string
}

// Tags of a GeneralName (RFC 5280, 4.2.1.6).
const (
	tagDNS = 2
	tagURI = 6
)

// namesOf reads the subject alternative names of a certificate. They are used as they are written: nothing is
// decoded or converted to another case, so that a name has only one form.
func namesOf(cert *x509.Certificate) (names, error) {
	var n names
	add := func(san string, known bool) {
		if n.san == "" || known && len(n.proxies) == 0 && !n.rateLimits {
			n.san = san
		}
	}
	err := eachName(cert, func(tag int, text string) {
		switch tag {
		case tagDNS:
			name, ok := proxyName(text)
			add(text, ok)
			if ok {
				n.proxies = append(n.proxies, name)
			}
		case tagURI:
			path := spiffePath(text)
			name, found := strings.CutPrefix(path, "/proxy/")
			name, ok := proxyName(name)
			switch {
			case path == "/ratelimit":
				add(text, true)
				n.rateLimits = true
			case found && ok:
				add(text, true)
				n.proxies = append(n.proxies, name)
			default:
				add(text, false)
			}
		}
	})
	return n, err
}

// eachName calls f for the names of a certificate, of any kind. crypto/x509 has URIs only in parsed form, in which
// different ones look alike.
func eachName(cert *x509.Certificate, f func(tag int, text string)) error {
	for _, e := range cert.Extensions {
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		var list asn1.RawValue
		if rest, err := asn1.Unmarshal(e.Value, &list); err != nil || len(rest) > 0 {
			return errors.New("the subject alternative names cannot be read")
		}
		for rest := list.Bytes; len(rest) > 0; {
			var name asn1.RawValue
			var err error
			if rest, err = asn1.Unmarshal(rest, &name); err != nil {
				return fmt.Errorf("the subject alternative names cannot be read: %w", err)
			}
			if name.Class == asn1.ClassContextSpecific {
				f(name.Tag, string(name.Bytes))
			}
		}
	}
	return nil
}

// spiffePath returns the path of a SPIFFE ID, of any trust domain (SPIFFE-ID.md, 2); empty for other URIs, such as
// those with a port, user, query, fragment, percent-encoding, empty segment or trailing slash.
func spiffePath(uri string) string {
	found := regexp.MustCompile(`^spiffe://[a-z0-9._-]{1,255}((?:/[A-Za-z0-9._-]+)+)$`).FindStringSubmatch(uri)
	if found == nil {
		return ""
	}
	return found[1]
}

// proxyName returns a text if it is valid as the name of a proxy (rest-api.md, "Names"). A wildcard is not, nor is a
// text with a meaning in paths.
func proxyName(text string) (name string, ok bool) {
	if text == "." || text == ".." || !regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`).MatchString(text) {
		return "", false
	}
	return text, true
}

// identity returns what a client with a certificate of these names may do.
func (n names) identity() server.Identity {
	label := n.san
	if label == "" {
		label = "without a name"
	}
	return server.Identity{Name: "certificate " + label, Proxies: n.proxies, RateLimits: n.rateLimits}
}
