package ir

// Databases are the files from which an Envoy knows where addresses are. Empty means that the Envoy has none of the kind.
type Databases struct {
	Country string `json:"country,omitempty"`
	ASN     string `json:"asn,omitempty"`
}
