package model

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SharedKey is a key that the issuer and the gateway share: at least as many bytes as the hash has (32, 48
// or 64), at most 1024. A string is stored sealed and shown as
// <redacted>. Writing <redacted> back keeps the stored key. An object names a secret with the key.
// +anyOf=[{type: string, minLength: 1, maxLength: maxClientSecret}, {type: object, required: [secret],
// additionalProperties: false, properties: {secret: {$ref: "#/components/schemas/Name"}}}]
type SharedKey struct {
	// Text may be sealed.
	Text string `json:"-"`
	// Secret is in JSON the object {"secret": NAME}.
	Secret string `json:"-"`
	// given says that the JSON has it: an empty one is not as good as none.
	given bool
}

// UnmarshalJSON reads either form.
func (k *SharedKey) UnmarshalJSON(b []byte) (err error) {
	k.given = true
	k.Text, k.Secret, err = textOrSecret(sharedKeyKey, b)
	return err
}

// IsSet reports whether there is a key.
func (k SharedKey) IsSet() bool { return k.given || k.Text != "" || k.Secret != "" }

const (
	// sharedKeyKey is the path of the key in the JSON.
	sharedKeyKey = "hmac_key"
	// defaultHMAC is the algorithm of a key.
	defaultHMAC  = "HS256"
	maxSharedKey = 1024
)

// hmacBytes is the size of the hash of an algorithm, and the least size of its keys (RFC 7518 section 3.2).
func hmacBytes() map[string]int { return map[string]int{"HS256": 32, "HS384": 48, "HS512": 64} }

// Algorithm is the only algorithm that a shared key is for.
func (t *TokenIssuer) Algorithm() string { return cmp.Or(t.HMACAlgorithm, defaultHMAC) }

// SharedKeyPlace is what the key of a filter is sealed for. at is where the configuration is in its JSON, with a dot
// behind it, or empty.
func SharedKeyPlace(filter, at string) string { return "filter/" + filter + "/" + at + sharedKeyKey }

// SharedKeyFault says why a text cannot be the key of an issuer; empty means that all is well.
func (t *TokenIssuer) SharedKeyFault(text string) string {
	switch least := hmacBytes()[t.Algorithm()]; {
	case len(text) < least:
		return fmt.Sprintf("has fewer than %d bytes: a short key is guessed from one token", least)
	case len(text) > maxSharedKey:
		return fmt.Sprintf("has more than %d bytes", maxSharedKey)
	case isKeyPair(text):
		return "is a public or private key: everybody may know a public key; only a random text that nobody else knows is a key here"
	case !isText(text) || text != strings.TrimSpace(text):
		return "begins or ends with a space, or has a control character, such as the line feed at the end of a file"
	}
	return ""
}

// isKeyPair reports whether a text is a key of a pair, or a certificate, in one of the forms that programs write.
func isKeyPair(text string) bool {
	if strings.Contains(text, "-----BEGIN") || strings.Contains(text, `"kty"`) || strings.HasPrefix(text, "ssh-") {
		return true
	}
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return false
	}
	_, pkix := x509.ParsePKIXPublicKey(der)
	_, pkcs1 := x509.ParsePKCS1PublicKey(der)
	_, certificate := x509.ParseCertificate(der)
	return pkix == nil || pkcs1 == nil || certificate == nil
}

// checkSharedKey accepts a shared key alone. Beside public keys, one of them could be taken for the shared one.
func (t *TokenIssuer) checkSharedKey(v *validator, at string) {
	field := at + "." + sharedKeyKey
	if _, known := hmacBytes()[t.Algorithm()]; !known {
		v.oneOf(at+".hmac_algorithm", t.HMACAlgorithm, slices.Sorted(maps.Keys(hmacBytes())))
		return
	}
	if !t.HMACKey.IsSet() {
		v.add(at+".hmac_algorithm", "requires hmac_key; the algorithm of a public key is in the key")
		return
	}
	if t.JWKS != nil || t.JWKSURI != "" || t.Upstream != "" {
		v.add(field, "cannot be combined with jwks, jwks_uri or upstream; remove these")
	}
	switch text := t.HMACKey.Text; {
	case t.HMACKey.Secret != "":
		v.secretName(field+".secret", t.HMACKey.Secret)
	case text == Redacted || IsSealed(text):
	default:
		if what := t.SharedKeyFault(text); what != "" {
			v.add(field, "%s", what)
		}
	}
}
