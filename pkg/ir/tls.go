package ir

import "time"

// TLS is what makes a listener one of HTTPS. It looks up the certificate for a
// connection by the host name that the client asks for, so that a certificate more
// or less leaves it as it is.
type TLS struct {
	// MinVersion is the oldest version: 1.2 or 1.3.
	MinVersion string `json:"minVersion"`
	// Chains are for the host names that need more than one certificate, sorted by
	// name.
	Chains []TLSChain `json:"chains,omitempty"`
}

// TLSChain is what a listener does on connections for some host names.
type TLSChain struct {
	// Name is unique within the listener.
	Name string `json:"name"`
	// ServerNames are exact names in lower case or "*.suffix", sorted.
	ServerNames []string `json:"serverNames"`
	// ClientCA are the authorities, one of which must have signed the client's
	// certificate; nil means that the client is not asked for one.
	ClientCA *Authorities `json:"clientCA,omitempty"`
	// Pairs are the certificates to choose from by the client's algorithms, sorted by
	// secret; none means that the certificate is looked up.
	Pairs []*Pair `json:"pairs,omitempty"`
}

// Authorities are the certificates of authorities.
type Authorities struct {
	// Secret is the name of the secret; empty means those of the system.
	Secret string `json:"secret"`
	// PEM are the certificates.
	PEM string `json:"-"`
}

// Pair is a certificate with its key.
type Pair struct {
	// Secret is the name of the secret.
	Secret string `json:"secret"`
	// Chain is in PEM, the leaf first.
	Chain string `json:"-"`
	// Key is in PEM.
	Key string `json:"-"`
	// Names are the host names that it is for, in lower case: exact ones, and
	// "*.suffix" for one more label.
	Names []string `json:"names"`
	// RSA says that the key is an RSA key; others are on elliptic curves.
	RSA bool `json:"rsa,omitempty"`
	// NotAfter is the end of its validity.
	NotAfter time.Time `json:"-"`
}

// Certificate is a pair under a name that clients ask for.
type Certificate struct {
	// Name is an exact host name in lower case, "*.suffix" for one more label, or
	// empty for clients that name no host.
	Name string `json:"name"`
	Pair *Pair  `json:"pair"`
}

// UpstreamTLS is how connections to the endpoints of a cluster are secured.
type UpstreamTLS struct {
	// Authorities are those, one of which must have signed the backend's certificate;
	// nil means that every certificate is accepted.
	Authorities *Authorities `json:"authorities,omitempty"`
	// Name is the DNS name, in lower case, or the IP address that this certificate must
	// carry; a DNS name is also the SNI. Empty means the DNS name or IP address of each
	// endpoint.
	Name string `json:"name,omitempty"`
	// Client is shown to the backend; nil means that it is shown no certificate.
	Client *Pair `json:"client,omitempty"`
}
