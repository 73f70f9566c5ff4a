package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// TokenIssuer signs tokens (JWT) with a key of its own, ES256.
type TokenIssuer struct {
	// Issuer is the iss of its tokens, and KeyID the kid of the key.
	Issuer, KeyID string
	key           *ecdsa.PrivateKey
}

// NewTokenIssuer makes a key.
func NewTokenIssuer(issuer, keyID string) *TokenIssuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // no random numbers
	}
	return &TokenIssuer{issuer, keyID, key}
}

// JWKS returns the key set with the public key.
func (i *TokenIssuer) JWKS() string {
	point, err := i.key.PublicKey.ECDH()
	if err != nil {
		panic(err) // a point that is on no curve
	}
	b := point.Bytes() // 4, x, y
	return fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":%q,"x":%q,"y":%q}]}`, i.KeyID,
		Base64(b[1:33]), Base64(b[33:]))
}

// Token signs a token of the issuer that expires in a day, after the longest run of the specs; claims override others.
func (i *TokenIssuer) Token(claims map[string]any) string {
	all := map[string]any{"iss": i.Issuer, "exp": time.Now().Add(24 * time.Hour).Unix()}
	maps.Copy(all, claims)
	return i.Sign(map[string]any{"alg": "ES256", "typ": "JWT", "kid": i.KeyID}, all)
}

// Sign signs any header and claims.
func (i *TokenIssuer) Sign(header, claims map[string]any) string {
	text := TokenPart(header) + "." + TokenPart(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		panic(err) // no random numbers
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + Base64(signature)
}

// TokenPart returns one part of a token.
func TokenPart(value map[string]any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // JSON of texts and numbers
	}
	return Base64(text)
}

// Base64 encodes in the form of base64 that tokens use.
func Base64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
