package ir

// AnyOf requires one of several credentials. A nil field is not an alternative. A credential of the request must be
// right.
type AnyOf struct {
	Keys      *KeyAccess `json:"keys,omitempty"`
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	Tokens    *Tokens    `json:"tokens,omitempty"`
}

// AllTokens returns the tokens that the host requires, or accepts as one of several credentials.
func (h *Host) AllTokens() *Tokens { return tokensAmong(h.Tokens, h.AnyOf) }

// AllTokens returns the tokens that the route requires, or accepts as one of several credentials.
func (r *Route) AllTokens() *Tokens { return tokensAmong(r.Tokens, r.AnyOf) }

func tokensAmong(t *Tokens, a *AnyOf) *Tokens {
	if t == nil && a != nil {
		return a.Tokens
	}
	return t
}

// AllKeys returns the API keys that the host requires, or accepts as one of several credentials.
func (h *Host) AllKeys() *KeyAccess { return keysAmong(h.Keys, h.AnyOf) }

// AllKeys returns the API keys that the route requires, or accepts as one of several credentials.
func (r *Route) AllKeys() *KeyAccess { return keysAmong(r.Keys, r.AnyOf) }

func keysAmong(k *KeyAccess, a *AnyOf) *KeyAccess {
	if k == nil && a != nil {
		return a.Keys
	}
	return k
}

// AllBasicAuth returns the passwords that the host requires, or accepts as one of several credentials.
func (h *Host) AllBasicAuth() *BasicAuth { return basicAuthAmong(h.BasicAuth, h.AnyOf) }

// AllBasicAuth returns the passwords that the route requires, or accepts as one of several credentials.
func (r *Route) AllBasicAuth() *BasicAuth { return basicAuthAmong(r.BasicAuth, r.AnyOf) }

func basicAuthAmong(b *BasicAuth, a *AnyOf) *BasicAuth {
	if b == nil && a != nil {
		return a.BasicAuth
	}
	return b
}
