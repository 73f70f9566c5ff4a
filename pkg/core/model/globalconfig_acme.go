package model

import (
	"cmp"
	"encoding/base64"
	"net/mail"
	"net/url"
	"strings"
)

// ACMEConfig says from which authority the gateway orders certificates (ACME, RFC 8555) for services with
// Certificate=auto. If several global configs of the type apply to a proxy, the first one by name does.
// +page=certificates.md
// +example={directory: staging, terms_agreed: true, email: ops@example.com}
type ACMEConfig struct {
	// The authority: staging or production of Let's Encrypt, or the URL of another directory. Certificates of staging
	// are for tests: browsers do not accept them.
	// +required
	// +minLength=1
	// +maxLength=maxURL
	Directory string `json:"directory"`
	// Must be true: you agree to the terms of the authority.
	// +required
	TermsAgreed bool `json:"terms_agreed"`
	// Address for messages of the authority.
	// +maxLength=253
	Email string `json:"email,omitempty"`
	// The account outside of ACME to which the authority binds the new one.
	ExternalAccount *ExternalAccount `json:"external_account,omitempty"`
	// Name of the secret with the authorities that sign the certificate of the directory itself. Default: those of the
	// system.
	CACertificate string `json:"ca_certificate,omitempty"`
	// Kind of key of the certificates. Default: ecdsa-p256.
	// +enum=[ecdsa-p256, ecdsa-p384, rsa-2048, rsa-4096]
	KeyType string `json:"key_type,omitempty"`
	// Profile of the certificates, such as shortlived for 6 days. The authority publishes the names of its profiles.
	// +maxLength=64
	Profile string `json:"profile,omitempty"`
	// Common name of an issuer. If the authority offers several chains, the first one with a certificate of this issuer
	// is used.
	// +maxLength=253
	PreferredChain string `json:"preferred_chain,omitempty"`
	// Orders certificates for all services of the proxy with a host name in fqdn, except those with Certificate=manual.
	EveryService bool `json:"every_service,omitempty"`
	// A certificate that the gateway has signed itself is shown until the first one is issued. Without it, clients get
	// no connection until then.
	Placeholder bool `json:"placeholder,omitempty"`
	// The directory for tests (gatehouse certificate test): staging, or a URL. Its certificates are thrown away. Default:
	// staging if directory is staging or production, otherwise directory.
	// +maxLength=maxURL
	TestDirectory string `json:"test_directory,omitempty"`
	// How records are written into DNS, for wildcards and services with Certificate=auto_dns. Absent means not at all.
	DNS *ACMEDNS `json:"dns,omitempty"`
}

// ExternalAccount binds an account to one that the authority knows already (RFC 8555 section 7.3.4).
type ExternalAccount struct {
	// +required
	// +minLength=1
	// +maxLength=maxWord
	KeyID string `json:"key_id"`
	// The key in base64url, as the authority shows it.
	// +required
	// +minLength=1
	// +maxLength=1024
	// +writeOnly=true
	HMACKey string `json:"hmac_key"` // stored sealed
}

// The directories that have a word, and their URLs.
const (
	ACMEStaging, acmeStagingURL       = "staging", "https://acme-staging-v02.api.letsencrypt.org/directory"
	ACMEProduction, acmeProductionURL = "production", "https://acme-v02.api.letsencrypt.org/directory"
)

// The kinds of keys of certificates.
const (
	KeyP256    = "ecdsa-p256"
	KeyP384    = "ecdsa-p384"
	KeyRSA2048 = "rsa-2048"
	KeyRSA4096 = "rsa-4096"
)

const hmacKey = "external_account.hmac_key"

func readACME(v *validator, at, _ string, config JSON) Spec {
	var c ACMEConfig
	if v.decode(at, config, &c) {
		c.check(v, at)
	}
	return &c
}

func (c *ACMEConfig) check(v *validator, at string) {
	c.checkDirectory(v, at+".directory", c.Directory)
	switch c.TestDirectory {
	case "":
	case ACMEProduction:
		v.add(at+".test_directory", "must not be %s", ACMEProduction)
	default:
		c.checkDirectory(v, at+".test_directory", c.TestDirectory)
	}
	if c.DNS != nil {
		c.DNS.check(v, at+".dns")
	}
	if !c.TermsAgreed {
		v.add(at+".terms_agreed", "must be true: read the terms of the authority, and agree to them")
	}
	if c.Email != "" {
		if a, err := mail.ParseAddress(c.Email); err != nil || a.Address != c.Email || len(c.Email) > 253 {
			v.add(at+".email", "is not an address such as ops@example.com")
		}
	}
	if e := c.ExternalAccount; e != nil {
		if e.KeyID == "" || len(e.KeyID) > maxWord || !isText(e.KeyID) {
			v.add(at+".external_account.key_id", "must have from 1 to %d characters", maxWord)
		}
		_, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(e.HMACKey, "="))
		if e.HMACKey == "" || e.HMACKey != Redacted && !IsSealed(e.HMACKey) && (err != nil || len(e.HMACKey) > 1024) {
			v.add(at+"."+hmacKey, "must be a key in base64url of up to 1024 characters")
		}
	}
	if c.CACertificate != "" {
		v.secretName(at+".ca_certificate", c.CACertificate)
	}
	v.oneOf(at+".key_type", cmp.Or(c.KeyType, KeyP256), []string{KeyP256, KeyP384, KeyRSA2048, KeyRSA4096})
	for _, f := range []struct {
		name, value string
		most        int
	}{{"profile", c.Profile, 64}, {"preferred_chain", c.PreferredChain, 253}} {
		if f.value != "" && (len(f.value) > f.most || !isText(f.value)) {
			v.add(at+"."+f.name, "must have up to %d printable characters", f.most)
		}
	}
}

func (c *ACMEConfig) checkDirectory(v *validator, field, directory string) {
	u, err := url.Parse(directory)
	switch {
	case directory == "":
		v.add(field, "is required: %s, %s, or the URL of a directory", ACMEStaging, ACMEProduction)
	case directory == ACMEStaging || directory == ACMEProduction:
	case len(directory) > maxURL || err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		v.add(field, "must be %s, %s, or an absolute URL of https without a user", ACMEStaging, ACMEProduction)
	case strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), "acme-v02.api.letsencrypt.org"):
		v.add(field, "is the production of Let's Encrypt, whose rate limits lock you out for a week: "+
			"write the word %s once staging works", ACMEProduction)
	}
}

// URL is the address of the directory.
func (c *ACMEConfig) URL() string {
	switch c.Directory {
	case ACMEStaging:
		return acmeStagingURL
	case ACMEProduction:
		return acmeProductionURL
	}
	return c.Directory
}

// OpenHMACKey returns the key of the external account; empty if there is none. name is that of the global config.
func (c *ACMEConfig) OpenHMACKey(name string, open func(sealed, place string) (string, error)) (string, error) {
	if c.ExternalAccount == nil {
		return "", nil
	}
	key, err := open(c.ExternalAccount.HMACKey, "globalconfig/"+name+"/"+hmacKey)
	return strings.TrimRight(key, "="), err
}

// ForTests is the directory for tests.
func (c *ACMEConfig) ForTests() string {
	switch {
	case c.TestDirectory != "":
		return c.TestDirectory
	case c.Directory == ACMEProduction:
		return ACMEStaging
	}
	return c.Directory
}

func (c *ACMEConfig) uses() (keys []Key) {
	if c.CACertificate != "" {
		keys = append(keys, SecretKey(c.CACertificate))
	}
	if c.DNS != nil && c.DNS.CACertificate != "" {
		keys = append(keys, SecretKey(c.DNS.CACertificate))
	}
	return keys
}
