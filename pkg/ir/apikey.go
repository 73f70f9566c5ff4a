package ir

// KeyAccess requires an API key.
type KeyAccess struct {
	// Header is the name of the header that carries the key, in lower case.
	Header string `json:"header"`
	// Set is the name of the key set. Clients are its allowed clients; nil means
	// all.
	Set     string   `json:"set"`
	Clients []string `json:"clients,omitempty"`
}

// APIKey is an API key that Envoy accepts.
type APIKey struct {
	// Client is unique among all keys. It begins with the name of the set and a slash.
	Client string `json:"client"`
	// Hash is the SHA-1 of the secret in the format of htpasswd.
	Hash string `json:"hash"`
}
