package ir

// Databases are the files from which an Envoy knows where addresses are. Empty means that the Envoy has none of the
// kind.
type Databases struct {
	Country string `json:"country,omitempty"`
	ASN     string `json:"asn,omitempty"`
}

// LocationHeaders are the headers, in lower case, in which backends are told where a client is. Clients cannot set
// them. Empty means that there is none.
type LocationHeaders struct {
	Country string `json:"country,omitempty"`
	ASN     string `json:"asn,omitempty"`
}
