package ir

// APIKey is an API key that Envoy accepts.
type APIKey struct {
	// Client is unique among all keys. It begins with the name of the set and a slash.
	Client string `json:"client"`
	// Hash is the SHA-1 of the secret in the format of htpasswd.
	Hash string `json:"hash"`
}
