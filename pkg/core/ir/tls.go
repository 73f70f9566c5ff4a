package ir

import "time"

// TLS makes a listener an HTTPS listener. Envoy looks up the certificate for a
// connection by the host name that the client requests, so the listener does not change
// when certificates do.
type TLS struct {
	// MinVersion is the oldest TLS version: 1.2 or 1.3.
	MinVersion string `json:"minVersion"`
	// Chains are for host names that need more than one certificate, sorted by name.
	Chains []TLSChain `json:"chains,omitempty"`
	// Passthrough are services that get the connections for some names, sorted by name.
	Passthrough []*L4Service `json:"passthrough,omitempty"`
	// Beside are the names of hosts that a wildcard of Passthrough would match, sorted: their connections are decrypted
	// like those for any other name.
	Beside []string `json:"beside,omitempty"`
	// Only means that no host has a certificate: connections for names that Passthrough does not have are closed.
	Only bool `json:"only,omitempty"`
	// Closed are host names that get no connection, exact or "*.suffix", sorted. Only HTTP/3 has them.
	Closed []string `json:"closed,omitempty"`
}

// TLSChain sets what a listener does on connections for some host names.
type TLSChain struct {
	// Name is unique within the listener.
	Name string `json:"name"`
	// ServerNames are exact names in lower case or "*.suffix", sorted.
	ServerNames []string `json:"serverNames"`
	// ClientCA are authorities. One of them must have signed the client's certificate;
	// nil requests no certificate.
	ClientCA *Authorities `json:"clientCA,omitempty"`
	// Pairs are certificates to choose from by the client's algorithms, sorted by
	// secret; empty means that the certificate is looked up.
	Pairs []*Pair `json:"pairs,omitempty"`
}

// Authorities are the certificates of authorities.
type Authorities struct {
	// Secret is the name of the secret; empty means the authorities of the system.
	Secret string `json:"secret"`
	// PEM are the certificates.
	PEM string `json:"-"`
}

// Pair is a certificate with its key.
type Pair struct {
	// Secret is the name of the secret.
	Secret string `json:"secret"`
	// Chain is in PEM. The leaf comes first.
	Chain string `json:"-"`
	// Key is in PEM.
	Key string `json:"-"`
	// Names are the host names of the certificate in lower case: exact names, and
	// "*.suffix" for one more label.
	Names []string `json:"names"`
	// RSA means that the key is an RSA key. Other keys are on elliptic curves.
	RSA bool `json:"rsa,omitempty"`
	// NotAfter is when the certificate expires.
	NotAfter time.Time `json:"-"`
}

// Certificate is a pair under a name that clients request.
type Certificate struct {
	// Name is an exact host name in lower case, or "*.suffix" for one more label. Empty
	// is for clients that send no host name.
	Name string `json:"name"`
	Pair *Pair  `json:"pair"`
}

// UpstreamTLS sets how connections to the endpoints of a cluster are secured.
type UpstreamTLS struct {
	// Authorities must include one that signed the backend's certificate; nil accepts
	// every certificate.
	Authorities *Authorities `json:"authorities,omitempty"`
	// Name is the DNS name in lower case, or the IP address, that the backend's
	// certificate must contain. A DNS name is also the SNI. Empty means the DNS name or
	// IP address of each endpoint.
	Name string `json:"name,omitempty"`
	// AltNames are names of which the backend's certificate must contain one, in place of Name, sorted: DNS names in lower
	// case, IP addresses and URIs. Empty means Name.
	AltNames []string `json:"altNames,omitempty"`
	// Client is the client certificate for the backend; nil means none.
	Client *Pair `json:"client,omitempty"`
}
