package model

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // all that Envoy knows; it is safe for a random secret of 192 bits
	"encoding/base64"
	"regexp"
	"time"
	"unicode/utf8"
)

// KeySet is a set of API keys, which filters name.
// +example={keyset_name: partners}
type KeySet struct {
	ID       int64  `json:"keyset_id"`
	Name     string `json:"keyset_name" form:"Keyset_name,required"`
	Tags     Tags   `json:"tags" form:"tags"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// Key implements Object.
func (s *KeySet) Key() Key { return KeySetKey(s.Name) }

// Meta implements Object.
func (s *KeySet) Meta() Meta { return Meta{&s.ID, &s.CreateTS, &s.UpdateTS} }

// TagList implements Tagged.
func (s *KeySet) TagList() *Tags { return &s.Tags }

// Validate implements Object.
func (s *KeySet) Validate() []FieldError {
	var v validator
	v.name("Keyset_name", s.Name, false)
	v.tags(s.Tags)
	return v.errs
}

// APIKey is a key of a set. The key itself is kept nowhere.
// +example={keyset_name: partners, key_name: mobile, key_hash: "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="}
type APIKey struct {
	ID     int64  `json:"key_id"`
	KeySet string `json:"keyset_name"`
	Name   string `json:"key_name" form:"Key_name,required"`
	// Hash is HashKey of the secret in the key.
	// +schema=KeyHash
	Hash string `json:"key_hash" form:"Key_hash"`
	// Description says whose the key is.
	// +schema=KeyDescription
	Description string `json:"key_description" form:"Key_description"`
	// Expires is when Envoys begin to refuse the key; empty means never.
	// +schema=KeyExpires
	Expires  string `json:"key_expires" form:"Key_expires"`
	Tags     Tags   `json:"tags" form:"tags"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`

	ended bool
}

// Key implements Object.
func (k *APIKey) Key() Key { return APIKeyKey(k.KeySet, k.Name) }

// Meta implements Object.
func (k *APIKey) Meta() Meta { return Meta{&k.ID, &k.CreateTS, &k.UpdateTS} }

// TagList implements Tagged.
func (k *APIKey) TagList() *Tags { return &k.Tags }

const maxKeyDescription = 200

// Validate implements Object.
func (k *APIKey) Validate() []FieldError {
	var v validator
	v.name("Key_name", k.Name, false)
	if !IsKeyHash(k.Hash) {
		v.add("Key_hash", "must be {SHA} and the base64 of the SHA-1 of the secret; POST without it makes a key")
	}
	if n := utf8.RuneCountInString(k.Description); n > maxKeyDescription {
		v.add("Key_description", "has %d characters; at most %d are allowed", n, maxKeyDescription)
	}
	if _, err := k.End(); err != nil {
		v.add("Key_expires", "%q is not a time in the form of RFC 3339, such as 2027-01-31T00:00:00Z", clipField(k.Expires))
	}
	v.tags(k.Tags)
	return v.errs
}

// End returns when the key ends; the zero time means never.
func (k *APIKey) End() (time.Time, error) {
	if k.Expires == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, k.Expires)
}

// Expired returns a copy of the key that Envoys refuse. The model has no clock: pkg/trust/expiry says when.
func (k *APIKey) Expired() *APIKey {
	c := *k
	c.ended = true
	return &c
}

// IsExpired reports whether Expired returned the key.
func (k *APIKey) IsExpired() bool { return k.ended }

// Client is the name under which Envoys and upstreams know the holder of the key. A slash is in
// no name, so that no set is taken for another.
func (k *APIKey) Client() string { return ClientID(k.KeySet, k.Name) }

// ClientID is the Client of the key of a set.
func ClientID(set, key string) string { return set + "/" + key }

// keySecretBytes is the length of the random part of a key.
const keySecretBytes = 24

// MakeKeySecret returns the random part of a new key.
func MakeKeySecret() []byte {
	secret := make([]byte, keySecretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// Text is the key itself, with its secret: what Basic takes of a name and a password.
func (k *APIKey) Text(secret []byte) string {
	return base64.StdEncoding.EncodeToString(append([]byte(k.Client()+":"), secret...))
}

// HashKey is a secret as Envoy compares it: the form of htpasswd.
func HashKey(secret []byte) string {
	sum := sha1.Sum(secret) //nolint:gosec // see the import
	return keyHashPrefix + base64.StdEncoding.EncodeToString(sum[:])
}

const keyHashPrefix = "{SHA}"

// keyHash is the only form that Envoy takes: it refuses a list with one entry of another.
var keyHash = regexp.MustCompile(`^\{SHA\}[A-Za-z0-9+/]{26}[AEIMQUYcgkosw048]=$`)

// IsKeyHash reports whether HashKey could have returned the text.
func IsKeyHash(text string) bool { return keyHash.MatchString(text) }
