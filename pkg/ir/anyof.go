package ir

// AnyOf asks for one of several credentials; nil means that one is not among them. One that is there has to be right.
type AnyOf struct {
	Keys      *KeyAccess `json:"keys,omitempty"`
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	Tokens    *Tokens    `json:"tokens,omitempty"`
}

// AllTokens are those that a request has to bring, or may.
func (h *Host) AllTokens() *Tokens { return tokensAmong(h.Tokens, h.AnyOf) }

// AllTokens are those that a request has to bring, or may.
func (r *Route) AllTokens() *Tokens { return tokensAmong(r.Tokens, r.AnyOf) }

func tokensAmong(t *Tokens, a *AnyOf) *Tokens {
	if t == nil && a != nil {
		return a.Tokens
	}
	return t
}

// AllKeys are those that a request has to bring, or may.
func (h *Host) AllKeys() *KeyAccess { return keysAmong(h.Keys, h.AnyOf) }

// AllKeys are those that a request has to bring, or may.
func (r *Route) AllKeys() *KeyAccess { return keysAmong(r.Keys, r.AnyOf) }

func keysAmong(k *KeyAccess, a *AnyOf) *KeyAccess {
	if k == nil && a != nil {
		return a.Keys
	}
	return k
}

// AllBasicAuth is what asks for passwords, or takes them.
func (h *Host) AllBasicAuth() *BasicAuth { return basicAuthAmong(h.BasicAuth, h.AnyOf) }

// AllBasicAuth is what asks for passwords, or takes them.
func (r *Route) AllBasicAuth() *BasicAuth { return basicAuthAmong(r.BasicAuth, r.AnyOf) }

func basicAuthAmong(b *BasicAuth, a *AnyOf) *BasicAuth {
	if b == nil && a != nil {
		return a.BasicAuth
	}
	return b
}
