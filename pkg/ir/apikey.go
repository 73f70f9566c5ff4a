package ir

// KeyAccess asks for an API key.
type KeyAccess struct {
	// Header has the key, in lower case.
	Header string `json:"header"`
	// Set is the name of the key set, Clients are those of its keys that may ask; nil means all.
	Set     string   `json:"set"`
	Clients []string `json:"clients,omitempty"`
}

// APIKey is one that Envoy knows.
type APIKey struct {
	// Client is unique among all keys, and begins with the name of the set and a slash.
	Client string `json:"client"`
	// Hash is the SHA-1 of the secret in the form of htpasswd.
	Hash string `json:"hash"`
}
