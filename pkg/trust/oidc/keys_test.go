package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// rsaKey returns a public key of a size, with additional fields.
func rsaKey(bits int, fields string) string {
	GinkgoHelper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf(`{"kty":"RSA","e":"AQAB","n":%q%s}`, base64.RawURLEncoding.EncodeToString(key.N.Bytes()), fields)
}

var _ = Describe("A key set", func() {
	read := func(ctx SpecContext, text string) (string, error) {
		GinkgoHelper()
		p := startProvider(testkit.CertificateOptions{})
		p.Serve("/keys", text)
		a, err := p.client().Ask(ctx, model.ProviderSource{JWKSURI: p.Issuer() + "/keys"}, nil)
		if err != nil {
			Expect(err.Error()).To(HavePrefix("the key set " + p.Issuer() + "/keys "))
		}
		return a.JWKS, err
	}

	It("is the same however the provider formats it", func(ctx SpecContext) {
		one := rsaKey(2048, `,"kid":"r"`)
		first, err := read(ctx, `{"keys":[`+keyP256+`,`+one+`,`+keyEd25519+`]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(first, `"kty"`)).To(Equal(3))
		again, err := read(ctx, ` {"x":1, "keys" : [ `+keyEd25519+`, `+one+`,`+keyP256+`,`+one+`] } `)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(first))
	})

	DescribeTable("leaves out",
		func(ctx SpecContext, other string) {
			set, err := read(ctx, `{"keys":[`+other+`,`+keyP256+`]}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(set).To(Equal(setP256))
		},
		Entry("keys for encryption", strings.Replace(keyEd25519, "{", `{"use":"enc",`, 1)),
		Entry("keys for other operations", strings.Replace(keyEd25519, "{", `{"key_ops":["encrypt"],`, 1)),
		Entry("keys for other algorithms", rsaKey(2048, `,"alg":"RSA-OAEP"`)),
		Entry("keys for the algorithm of another type", rsaKey(2048, `,"alg":"HS256"`)),
		Entry("symmetric keys", `{"kty":"oct","k":"c2VjcmV0"}`),
		Entry("RSA keys that are too short", `{"kty":"RSA","e":"AQAB","n":"`+strings.Repeat("f", 171)+`"}`),
		Entry("an RSA key with the exponent 1", strings.Replace(rsaKey(2048, ""), "AQAB", "AQ", 1)),
		Entry("RSA keys with an invalid number", `{"kty":"RSA","e":"AQAB","n":"***"}`),
		Entry("points that are not on the curve", strings.Replace(keyP256, "MKBC", "MKBD", 1)),
		Entry("other curves", strings.Replace(keyP256, "P-256", "secp256k1", 1)),
		Entry("curves for key exchange", strings.Replace(keyEd25519, "Ed25519", "X25519", 1)),
		Entry("Ed25519 keys that are too short", strings.Replace(keyEd25519, "11qY", "", 1)),
		Entry("unknown types", `{"kty":"AKP","alg":"ML-DSA-44","pub":"x"}`),
		Entry("other values", `7`),
		Entry("duplicates", keyP256),
	)

	It("keeps keys on P-384 and P-521", func(ctx SpecContext) {
		// The second is from RFC 7520 section 3.1.
		const p521 = `{"kty":"EC","kid":"b","use":"sig","crv":"P-521","x":"AHKZLLOsCOzz5cY97ewNUajB957y-C-U88c3v13nmGZx6sYl_oJXu9A5RkTKqjqvjyekWF-7ytDyRXYgCF5cj0Kt","y":"AdymlHvOiLxXkEhayXQnNCvDX4h9htZaCJN34kfmC6pV5OhQHiraVySsUdaQkAgDPrwQrJmbnX9cwlGfP-HqHZR1"}`
		const p384 = `{"kty":"EC","crv":"P-384","alg":"ES384","x":"qofKIr6LBTeOscce8yCtdG4dO2KLp5uYWfdB4IJUKjhVAvJdv1UpbDpUXjhydgq3","y":"NhfeSpYmLG9dnpi_kpLcKfj0Hb0omhR86doxE7XwuMAKYLHOHX6BnXpDHXyQ6g5f"}`
		set, err := read(ctx, `{"keys":[`+p521+`,`+p384+`]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(set).To(HavePrefix(`{"keys":[{"alg":"ES384","crv":"P-384","kty":"EC","x":"qofK`))
		Expect(set).To(ContainSubstring(`{"alg":"ES512","crv":"P-521","kid":"b","kty":"EC","x":"AHKZ`))
	})

	DescribeTable("is refused if it",
		func(ctx SpecContext, text, words string) {
			_, err := read(ctx, text)
			Expect(err).To(MatchError(ContainSubstring(words)))
		},
		Entry("is empty", `{"keys":[]}`, "has 0 keys, none of which can be used"),
		Entry("has no signature keys", `{"keys":[{"kty":"oct","k":"eA"}]}`, "has 1 keys, none of which can be used: tokens are verified with RSA keys of 2048 bits or more"),
		Entry("has no keys", `{}`, `has no list "keys"`),
		Entry("has keys that are not a list", `{"keys":{}}`, `has no list "keys"`),
		Entry("is not an object", `[]`, "is not a JSON object"),
		Entry("has a private key", `{"keys":[`+keyP256+`,`+strings.Replace(keyEd25519, "{", `{"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",`, 1)+`]}`,
			`publishes the private half of key 2 ("d"): its signatures prove nothing; replace the key at the provider`),
		Entry("has part of a private key", `{"keys":[`+strings.Replace(keyP256, "{", `{"qi":null,`, 1)+`]}`, `publishes the private half of key 1 ("qi")`),
		Entry("has 101 keys", `{"keys":[`+strings.Repeat(keyP256+",", 100)+keyP256+`]}`, "has 101 keys; at most 100 are allowed: remove keys that no longer sign"),
		Entry("has 10,000 keys", `{"keys":[`+strings.Repeat(keyP256+",", 9999)+keyP256+`]}`, "is larger than 512 KiB"),
		Entry("is 10,000 numbers", `{"keys":[`+strings.Repeat("1,", 9999)+`1]}`, "has 10000 keys"),
		Entry("is deeply nested", `{"keys":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`, "is not a JSON object"),
	)
})
