package kong

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the only form that Envoy reads
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

const (
	keySet     = "kong"       // the keys of all consumers
	basicUsers = "kong-users" // the filter with their passwords
	// openUsers is the same for plugins that pass the password on.
	openUsers = "kong-users-forwarded"
)

// addConsumers adds the consumers, with their keys, passwords and tokens.
func (b *builder) addConsumers() {
	var keys []map[string]any
	b.leaveOut()
	for _, c := range b.consumers {
		credentials := map[string][]any{}
		for i, n := range c.keys {
			name := fmt.Sprintf("%s-%d", nameOf(c.name), i+1)
			keys = append(keys, map[string]any{"key_name": name, "key_hash": hashOf(get(b.file, n, "key", ""))})
			credentials["keys"] = append(credentials["keys"], keySet+"/"+name)
			b.file.note(n, "consumer %s: a key of Gatehouse has its name in it: the client sends the text %s/%s:KEY in base64 in place of its KEY",
				c.name, keySet, name)
			b.rest(n, "key of consumer "+c.name, "key")
		}
		for _, n := range c.basics {
			if b.addUser(c, n) {
				name := get(b.file, n, "username", "")
				credentials["users"] = append(credentials["users"], basicUsers+"/"+name)
				if b.forwards() {
					credentials["users"] = append(credentials["users"], openUsers+"/"+name)
				}
			}
		}
		for _, n := range c.jwts {
			b.rest(n, "token of consumer "+c.name, "key", "algorithm", "rsa_public_key", "secret")
			key := get(b.file, n, "key", "")
			credentials["tokens"] = append(credentials["tokens"], map[string]any{"issuer": key, "claim": "iss", "value": key})
		}
		b.doc.Consumers = append(b.doc.Consumers, map[string]any{
			"consumer_name": nameOf(c.name), "consumer_groups": c.groups, "consumer_credentials": credentials,
		})
	}
	if len(keys) > 0 {
		b.doc.KeySets = []map[string]any{{"keyset_name": keySet, "keys": keys}}
	}
}

// leaveOut removes the consumers that have plugins of their own that decide who may send requests: nobody must be able to
// do more than in Kong.
func (b *builder) leaveOut() {
	for _, p := range b.plugins {
		if p.consumer == "" && p.tier == "" || p.name == "rate-limiting" {
			continue
		}
		decides := decidesAccess(p.name) || p.name == "request-termination"
		why := "has no equivalent for single consumers"
		if decides {
			why += "; they are left out, and their requests refused"
			b.consumers = slices.DeleteFunc(b.consumers, func(c *consumer) bool {
				return c.name == p.consumer || p.consumer == "" && slices.Contains(c.tiers, p.tier)
			})
		}
		b.untranslated(p, false, why)
	}
}

// forwards reports whether a plugin passes passwords on.
func (b *builder) forwards() bool {
	return slices.ContainsFunc(b.plugins, func(p *plugin) bool {
		return p.name == "basic-auth" && !get(b.file, p.config, "hide_credentials", false)
	})
}

// hashOf is the form in which Gatehouse stores the secret of a key.
func hashOf(secret string) string {
	sum := sha1.Sum([]byte(secret)) //nolint:gosec // see above
	return "{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}

// minPassword is the length that a password must have.
const minPassword = 12

// addUser adds a user with a password. It reports whether the user can be one.
func (b *builder) addUser(c *consumer, n *yaml.Node) bool {
	name, password := get(b.file, n, "username", ""), get(b.file, n, "password", "")
	b.rest(n, "password of consumer "+c.name, "username", "password")
	switch {
	case b.hashed:
		b.file.note(n, "consumer %s: with _transform: false, passwords are hashed in a form that nothing else verifies: that of %s is left out", c.name, name)
		return false
	case !regexp.MustCompile(`^[A-Za-z0-9._@+-]+$`).MatchString(name):
		b.file.note(n, "consumer %s: the name of a user may have letters, digits and . _ @ + - only: it is left out", c.name)
		return false
	case len(password) < minPassword:
		b.file.note(n, "consumer %s: the password of %s has fewer than %d bytes: it is left out", c.name, name, minPassword)
		return false
	}
	b.users = append(b.users, map[string]any{"name": name, "password": password})
	return true
}

// mostIssuers bounds the issuers of a filter.
const mostIssuers = 10

// issuers returns the issuers of tokens with their keys. A shared key may be in base64.
func (b *builder) issuers(isBase64 bool) (list []map[string]any) {
	for _, c := range b.consumers {
		for _, n := range c.jwts {
			issuer := map[string]any{"issuer": get(b.file, n, "key", "")}
			algorithm, secret := get(b.file, n, "algorithm", "HS256"), get(b.file, n, "secret", "")
			if decoded, err := base64.StdEncoding.DecodeString(secret); isBase64 && err == nil {
				secret = string(decoded)
			}
			jwk, least := b.jwk(n), map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}[algorithm]
			switch {
			case least > 0 && len(secret) >= least:
				issuer["hmac_key"], issuer["hmac_algorithm"] = secret, algorithm
			case jwk != nil:
				issuer["jwks"] = map[string]any{"keys": []any{jwk}}
			default:
				b.file.note(n, "consumer %s: its tokens are refused: their key is too short, or is none of RSA or P-256 with %s", c.name, algorithm)
				continue
			}
			list = append(list, issuer)
		}
	}
	return list
}

// jwk returns the public key of a credential; nil if it has none that can be used.
func (b *builder) jwk(n *yaml.Node) map[string]any {
	algorithm := get(b.file, n, "algorithm", "HS256")
	block, _ := pem.Decode([]byte(get(b.file, n, "rsa_public_key", "")))
	if block == nil || !slices.Contains([]string{"RS256", "RS384", "RS512", "ES256"}, algorithm) {
		return nil
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil
	}
	encode := base64.RawURLEncoding.EncodeToString
	switch k := public.(type) {
	case *rsa.PublicKey:
		return map[string]any{"kty": "RSA", "alg": algorithm, "n": encode(k.N.Bytes()), "e": encode(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil || len(point) != 65 {
			return nil
		}
		return map[string]any{"kty": "EC", "alg": algorithm, "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
	}
	return nil
}
