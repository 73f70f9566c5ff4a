package envoy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
)

// TLS says how an Envoy and its control plane authenticate to each other. All paths are
// absolute, and as Envoy sees them.
type TLS struct {
	// CA is a PEM file with the authorities of the control plane's certificate.
	CA string
	// Cert and Key are PEM files with the Envoy's own certificate; both empty
	// means none.
	Cert, Key string
	// ServerName is the DNS name or IP address that the control plane's certificate
	// must contain; empty means the host of Params.XDSAddr.
	ServerName string
	// CertFile and CAFile are where Envoy finds what Follow returns. If both are empty,
	// Envoy reads CA, Cert and Key once.
	CertFile, CAFile string
}

// Names of the secrets in the files of Follow.
const (
	certificateSecret = "gatehouse_xds_certificate"
	authoritySecret   = "gatehouse_xds_ca"
)

// tlsContext is TLS in the form that the template needs.
type tlsContext struct {
	TLS
	// Name is the name that the certificate must contain, and SANType its type. SNI is
	// empty if Name is an address (RFC 6066).
	Name, SANType, SNI string
	Follow             bool
}

func newTLSContext(t *TLS, xdsHost string) (*tlsContext, error) {
	if t == nil {
		return nil, nil
	}
	if t.CA == "" || (t.Cert == "") != (t.Key == "") {
		return nil, fmt.Errorf("TLS needs the authorities of the control plane, and a certificate needs its key")
	}
	for _, file := range []string{t.CA, t.Cert, t.Key, t.CertFile, t.CAFile} {
		if file != "" && (!path.IsAbs(file) || !isText(file)) {
			return nil, fmt.Errorf("file %q is not an absolute path of text", file)
		}
	}
	c := &tlsContext{TLS: *t, Name: t.ServerName, SANType: "DNS", Follow: t.CAFile != ""}
	if c.Name == "" {
		c.Name = xdsHost
	}
	if !isText(c.Name) {
		return nil, fmt.Errorf("server name %q must be text without control characters", c.Name)
	}
	if ip, err := netip.ParseAddr(c.Name); err == nil {
		c.Name, c.SANType = ip.Unmap().WithZone("").String(), "IP_ADDRESS"
	} else {
		c.SNI = c.Name
	}
	return c, nil
}

// secretType is Envoy's type of a secret.
const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// object is a JSON object.
type object = map[string]any

// Follow returns the content of the files, in JSON, through which an Envoy watches the
// certificates of the connection to its control plane: it reads the PEM files again
// when a file is moved into their directory. certificate, for TLS.CertFile, is nil if
// the Envoy has none; authorities is for TLS.CAFile. xdsAddr is as in Params.
func Follow(t TLS, xdsAddr string) (certificate, authorities []byte, err error) {
	xds, err := parseAddress(xdsAddr)
	if err != nil {
		return nil, nil, fmt.Errorf("xDS address %q: %w", xdsAddr, err)
	}
	c, err := newTLSContext(&t, xds.Host)
	if err != nil {
		return nil, nil, err
	}
	if t.Cert != "" {
		if certificate, err = secretFile(certificateSecret, object{"tls_certificate": object{
			"certificate_chain": object{"filename": t.Cert}, "private_key": object{"filename": t.Key},
		}}); err != nil {
			return nil, nil, err
		}
	}
	authorities, err = secretFile(authoritySecret, object{"validation_context": object{
		"trusted_ca":                    object{"filename": t.CA},
		"match_typed_subject_alt_names": []any{object{"san_type": c.SANType, "matcher": object{"exact": c.Name}}},
	}})
	return certificate, authorities, err
}

func secretFile(name string, secret object) ([]byte, error) {
	secret["@type"], secret["name"] = secretType, name
	return json.MarshalIndent(object{"resources": []any{secret}}, "", " ")
}
