package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// checkingEnvoy is the bootstrap of an Envoy that answers 200 to a token that one of
// some keys has signed.
const checkingEnvoy = `
admin: {address: {pipe: {path: %s/admin.sock}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}
          http_filters:
          - name: envoy.filters.http.jwt_authn
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
              providers: {it: {local_jwks: {inline_string: '%s'}}}
              rules: [{match: {prefix: /}, requires: {provider_name: it}}]
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`

// signer signs tokens with an algorithm (RFC 7518 section 3, RFC 8037 section 3.1).
type signer struct {
	alg  string
	hash crypto.Hash
	key  crypto.Signer
}

// token returns a token without claims.
func (s signer) token() string {
	GinkgoHelper()
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+s.alg+`"}`)) + ".e30"
	digest := []byte(text)
	if s.hash != 0 {
		h := s.hash.New()
		h.Write(digest)
		digest = h.Sum(nil)
	}
	var signature []byte
	var err error
	switch key := s.key.(type) {
	case *ecdsa.PrivateKey:
		r, v, failed := ecdsa.Sign(rand.Reader, key, digest)
		size := (key.Params().BitSize + 7) / 8
		signature, err = append(r.FillBytes(make([]byte, size)), v.FillBytes(make([]byte, size))...), failed
	case *rsa.PrivateKey:
		if strings.HasPrefix(s.alg, "PS") {
			signature, err = rsa.SignPSS(rand.Reader, key, s.hash, digest, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		} else {
			signature, err = rsa.SignPKCS1v15(rand.Reader, key, s.hash, digest)
		}
	default:
		signature, err = key.Sign(rand.Reader, digest, s.hash)
	}
	Expect(err).NotTo(HaveOccurred())
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// public returns the key as a provider publishes it.
func (s signer) public() string {
	GinkgoHelper()
	b64 := base64.RawURLEncoding.EncodeToString
	fields := map[string]string{"use": "sig"}
	switch key := s.key.Public().(type) {
	case *rsa.PublicKey:
		fields["kty"], fields["n"], fields["e"] = "RSA", b64(key.N.Bytes()), "AQAB"
	case *ecdsa.PublicKey:
		point, err := key.Bytes()
		Expect(err).NotTo(HaveOccurred())
		half := len(point) / 2
		fields["kty"], fields["crv"], fields["x"], fields["y"] = "EC", key.Params().Name, b64(point[1:1+half]), b64(point[1+half:])
	case ed25519.PublicKey:
		fields["kty"], fields["crv"], fields["x"] = "OKP", "Ed25519", b64(key)
	}
	text, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("Keys that are kept", func() {
	It("are all of the types with which Envoy verifies tokens", func(ctx SpecContext) {
		rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
		Expect(err).NotTo(HaveOccurred())
		second, err := rsa.GenerateKey(rand.Reader, 2048)
		Expect(err).NotTo(HaveOccurred())
		_, edKey, err := ed25519.GenerateKey(rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		signers := []signer{
			{"RS256", crypto.SHA256, rsaKey}, {"RS384", crypto.SHA384, rsaKey}, {"RS512", crypto.SHA512, rsaKey},
			{"PS256", crypto.SHA256, rsaKey}, {"PS384", crypto.SHA384, rsaKey}, {"PS512", crypto.SHA512, rsaKey}, {"EdDSA", 0, edKey},
			{"RS256", crypto.SHA256, second},
		}
		for alg, c := range map[string]struct {
			curve elliptic.Curve
			hash  crypto.Hash
		}{"ES256": {elliptic.P256(), crypto.SHA256}, "ES384": {elliptic.P384(), crypto.SHA384}, "ES512": {elliptic.P521(), crypto.SHA512}} {
			key, err := ecdsa.GenerateKey(c.curve, rand.Reader)
			Expect(err).NotTo(HaveOccurred())
			signers = append(signers, signer{alg, c.hash, key})
		}
		var keys []string
		for _, s := range signers {
			keys = append(keys, s.public())
		}
		p := startProvider(testkit.CertificateOptions{})
		p.SetKeys(keys...)
		a, err := p.client().Ask(ctx, model.ProviderSource{JWKSURI: p.Issuer() + "/keys"}, nil)
		Expect(err).NotTo(HaveOccurred())

		port, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		envoy, err := testkit.RunEnvoy(ctx, dir, fmt.Sprintf(checkingEnvoy, dir, port, a.JWKS))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(envoy.Kill)
		ask := func(token string) string {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			req.Close = true
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := (&http.Client{Timeout: testkit.Patience}).Do(req)
			if err != nil {
				return err.Error()
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			return res.Status + ": " + string(text)
		}
		Eventually(func() string { return ask("") }).WithContext(ctx).WithTimeout(30 * time.Second).Should(HavePrefix("401 Unauthorized"))
		for _, s := range signers {
			Expect(ask(s.token())).To(Equal("200 OK: "), s.alg)
		}
		stranger, err := rsa.GenerateKey(rand.Reader, 2048)
		Expect(err).NotTo(HaveOccurred())
		Expect(ask(signer{"RS256", crypto.SHA256, stranger}.token())).To(Equal("401 Unauthorized: Jwt verification fails"))
	})
})
