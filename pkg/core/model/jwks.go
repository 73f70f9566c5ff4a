package model

import (
	"bytes"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// mostKeys bounds the keys of a provider, which usually has two or three.
const mostKeys = 100

// object is a JSON object, whose names are compared as they are: Go's own decoding
// into a struct takes Kty for kty.
type object map[string]json.RawMessage

// text returns a text; empty if there is none of this name.
func (o object) text(name string) string { return TextOf(o[name]) }

// TextOf returns the text that a part of a JSON document is; empty if it is none.
func TextOf(part json.RawMessage) string {
	var s string
	if json.Unmarshal(part, &s) != nil {
		return ""
	}
	return s
}

// publicKey is a public key as Envoy gets it. The fields are in the order of their names.
type publicKey struct {
	Alg string `json:"alg,omitempty"`
	Crv string `json:"crv,omitempty"`
	E   string `json:"e,omitempty"`
	Kid string `json:"kid,omitempty"`
	Kty string `json:"kty"`
	N   string `json:"n,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
}

// ReadKeys returns the keys of a key set (RFC 7517) that Envoy verifies signatures with,
// sorted, in JSON. Others are left out: those for encryption, symmetric ones, those that are
// too short or of an unknown type.
func ReadKeys(text []byte) (string, error) {
	var set object
	if err := json.Unmarshal(text, &set); err != nil {
		return "", errors.New("is not a JSON object")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(set["keys"], &list); err != nil {
		return "", fmt.Errorf(`has no list "keys": a key set is {"keys": [...]}`)
	}
	if len(list) > mostKeys {
		return "", fmt.Errorf("has %d keys; at most %d are allowed: remove keys that no longer sign", len(list), mostKeys)
	}
	var keys [][]byte
	for i, raw := range list {
		var fields object
		if json.Unmarshal(raw, &fields) != nil {
			continue // RFC 7517 section 5: what is not understood is ignored
		}
		if name := privatePart(fields); name != "" {
			return "", fmt.Errorf("publishes the private half of key %d (%q): its signatures prove nothing; "+
				"replace the key at the provider", i+1, name)
		}
		if k, ok := readKey(fields); ok {
			b, err := json.Marshal(k)
			if err != nil {
				return "", err
			}
			keys = append(keys, b)
		}
	}
	if len(keys) == 0 {
		return "", fmt.Errorf("has %d keys, none of which can be used: "+
			"tokens are verified with RSA keys of 2048 bits or more, "+
			"elliptic-curve keys (P-256, P-384, P-521) or Ed25519 keys, for signatures", len(list))
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	return `{"keys":[` + string(bytes.Join(keys, []byte(","))) + `]}`, nil
}

// privatePart returns the field that only a private key has (RFC 7518 section 6); empty
// if there is none. A symmetric key (oct) is left out instead: what it signs is refused
// anyway.
func privatePart(fields object) string {
	if fields.text("kty") == "oct" {
		return ""
	}
	for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth"} {
		if _, has := fields[name]; has {
			return name
		}
	}
	return ""
}

func readKey(fields object) (publicKey, bool) {
	k := publicKey{Alg: fields.text("alg"), Crv: fields.text("crv"), Kid: fields.text("kid"), Kty: fields.text("kty")}
	if use := fields.text("use"); use != "" && use != "sig" || !verifies(fields["key_ops"]) || len(k.Kid) > 1024 {
		return k, false
	}
	switch k.Kty {
	case "RSA":
		k.Crv, k.N, k.E = "", fields.text("n"), fields.text("e")
		return k, k.signsWith("RS256", "RS384", "RS512", "PS256", "PS384", "PS512") && isRSA(k.N, k.E)
	case "EC":
		k.X, k.Y = fields.text("x"), fields.text("y")
		curve, size, alg := curveOf(k.Crv)
		if curve == nil || !k.signsWith(alg) {
			return k, false
		}
		k.Alg = alg
		return k, isPoint(curve, size, k.X, k.Y)
	case "OKP":
		k.X = fields.text("x")
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Crv != "Ed25519" || !k.signsWith("EdDSA") {
			return k, false
		}
		// Envoy refuses tokens of other algorithms at a key that does not name its own.
		k.Alg = "EdDSA"
		return k, err == nil && len(x) == 32
	}
	return k, false
}

// signsWith reports whether a key is for one of these algorithms, or says nothing of it.
func (k publicKey) signsWith(algs ...string) bool { return k.Alg == "" || slices.Contains(algs, k.Alg) }

// verifies reports whether the operations of a key, if it lists them, have verify.
func verifies(operations json.RawMessage) bool {
	var list []string
	return operations == nil || json.Unmarshal(operations, &list) == nil && slices.Contains(list, "verify")
}

// isRSA reports whether a modulus has 2048 to 8192 bits, and the exponent is usual.
func isRSA(modulus, exponent string) bool {
	n, err1 := base64.RawURLEncoding.DecodeString(modulus)
	e, err2 := base64.RawURLEncoding.DecodeString(exponent)
	if err1 != nil || err2 != nil {
		return false
	}
	bits, small := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	return bits.BitLen() >= 2048 && bits.BitLen() <= 8192 && bits.Bit(0) == 1 && small.BitLen() <= 32 &&
		small.Bit(0) == 1 && small.Cmp(big.NewInt(3)) >= 0
}

// curveOf returns a curve, how many bytes a coordinate has, and the algorithm that is for
// it (RFC 7518 section 3.4).
func curveOf(name string) (ecdh.Curve, int, string) {
	switch name {
	case "P-256":
		return ecdh.P256(), 32, "ES256"
	case "P-384":
		return ecdh.P384(), 48, "ES384"
	case "P-521":
		return ecdh.P521(), 66, "ES512"
	}
	return nil, 0, ""
}

// isPoint reports whether two coordinates are a point of the curve.
func isPoint(curve ecdh.Curve, size int, xText, yText string) bool {
	x, err1 := base64.RawURLEncoding.DecodeString(xText)
	y, err2 := base64.RawURLEncoding.DecodeString(yText)
	if err1 != nil || err2 != nil || len(x) != size || len(y) != size {
		return false
	}
	_, err := curve.NewPublicKey(slices.Concat([]byte{4}, x, y))
	return err == nil
}
