package model

import "slices"

// Provider is what an identity provider says of itself: its discovery document (OpenID
// Connect Discovery 1.0) and its keys (RFC 7517).
type Provider struct {
	// Source is what was asked.
	Source ProviderSource
	// The endpoints are empty if the document does not have them.
	AuthorizationEndpoint, TokenEndpoint, EndSessionEndpoint, JWKSURI string
	// JWKS is the JSON of the keys; empty while they are not known.
	JWKS string
	// Fault says why the last attempt to ask failed; empty means that it did not. What
	// was known before is still in the other fields.
	Fault string
}

// ProviderSource is where a provider is asked.
type ProviderSource struct {
	// Issuer is the provider's name for itself, a URL; empty means that only JWKSURI is
	// known.
	Issuer string
	// JWKSURI is where the keys are, if that is not taken from the discovery document.
	JWKSURI string
	// Upstream names the upstream through which the provider is reached; empty means at
	// the hosts of the URLs themselves.
	Upstream string
	// UpstreamFor is a URL at the host that the upstream is; what is at other hosts is asked
	// for there. Empty without Upstream.
	UpstreamFor string
	// Discover says that the discovery document is needed.
	Discover bool
}

// Providers are what the identity providers of one configuration say.
type Providers []*Provider

// Of returns what one of them says; nil if it has not answered.
func (p Providers) Of(source ProviderSource) *Provider {
	for _, one := range p {
		if one != nil && one.Source == source {
			return one
		}
	}
	return nil
}

// learner is a configuration that depends on what identity providers say.
type learner interface {
	Spec
	// learn returns a copy that knows the providers.
	learn(all Providers) Spec
}

// LoginOf returns the login that a configuration is; nil if it is none.
func LoginOf(spec Spec) *Login {
	if s, ok := spec.(interface{ Login() *Login }); ok {
		return s.Login()
	}
	return nil
}

// SourcesOf is what has to be asked for a configuration, without duplicates.
func SourcesOf(spec Spec) []ProviderSource {
	var all, list []ProviderSource
	if f, ok := spec.(interface{ Sources() []ProviderSource }); ok {
		all = f.Sources()
	}
	if l := LoginOf(spec); l != nil {
		all = append(all, l.Source())
	}
	for _, s := range all {
		if s != (ProviderSource{}) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
