package model_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// headerRegex returns a route with a condition on a header.
func headerRegex(expr string) *model.Route {
	return &model.Route{Service: "shop", Name: "root", Prefix: "/", Config: model.RouteConfig{Headers: []model.ValueMatch{{Name: "x", Regex: &expr}}}}
}

// rsaAuthority returns the certificate of an authority with an RSA key of so many bits.
func rsaAuthority(bits uint) string {
	GinkgoHelper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), BasicConstraintsValid: true, IsCA: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}, signer)
	Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

var _ = Describe("The work for an object", func() {
	DescribeTable("is bounded for an expression", func(expr string, says string) {
		errs := headerRegex(expr).Validate()
		if says == "" {
			Expect(errs).To(BeEmpty())
			return
		}
		Expect(errs).To(ConsistOf(And(HaveField("Field", "Route_config.headers[0].regex"), HaveField("Message", ContainSubstring(says)))))
	},
		Entry("with 10 classes of Unicode", "["+strings.Repeat(`\pL`, 10)+"]", ""),
		Entry("with 11 of them", "["+strings.Repeat(`\pL`, 11)+"]", "has too many classes"),
		Entry("with 11 that are the opposite", "["+strings.Repeat(`\PL`, 11)+"]", "has too many classes"),
		Entry("with two long ranges in which case is ignored", "(?i)["+strings.Repeat("\u0100-\u0200", 2)+"]", ""),
		Entry("with three long ranges in which case is ignored", "(?i)["+strings.Repeat("\u0100-\u0200", 3)+"]", "has too many classes"),
		Entry("with many dashes before other letters, which are no ranges", strings.Repeat("-\u65e5", 20), ""),
	)

	DescribeTable("is bounded for a rewrite, whose length is checked before anything else", func(length int, says string) {
		r := &model.Route{Service: "shop", Name: "root", Prefix: "/", Config: model.RouteConfig{Rewrite: &model.Rewrite{Regex: strings.Repeat("(", length), Substitution: "x"}}}
		Expect(r.Validate()).To(ConsistOf(And(HaveField("Field", "Route_config.rewrite.regex"), HaveField("Message", ContainSubstring(says)))))
	},
		Entry("of 1,024 characters", 1024, "is not a regular expression in RE2 syntax"),
		Entry("of 1,025 characters", 1025, "has 1025 characters; at most 1024 are allowed"),
	)

	DescribeTable("is bounded for conditions of a route", func(n int, refused []string) {
		value := "a"
		headers := make([]model.ValueMatch, n)
		for i := range headers {
			headers[i] = model.ValueMatch{Name: "x", Exact: &value}
		}
		methods := make([]string, n)
		for i := range methods {
			methods[i] = "GET"
		}
		var got []string
		for _, c := range []model.RouteConfig{{Headers: headers}, {Query: headers}, {Methods: methods}} {
			got = append(got, fields((&model.Route{Service: "shop", Name: "root", Prefix: "/", Config: c}).Validate())...)
		}
		Expect(got).To(Equal(refused))
	},
		Entry("100", 100, nil),
		Entry("101", 101, []string{"Route_config.headers", "Route_config.query", "Route_config.methods"}),
	)

	DescribeTable("is not done for conditions beyond the bound", func(c model.RouteConfig, says string) {
		Expect((&model.Route{Service: "shop", Name: "root", Prefix: "/", Config: c}).Validate()).To(ConsistOf(HaveField("Message", says)))
	},
		Entry("methods", model.RouteConfig{Methods: make([]string, 101)}, "has 101 entries; at most 100 are allowed"),
		Entry("headers", model.RouteConfig{Headers: make([]model.ValueMatch, 101)}, "has 101 entries; at most 100 are allowed"),
		Entry("query parameters", model.RouteConfig{Query: make([]model.ValueMatch, 101)}, "has 101 entries; at most 100 are allowed"),
	)

	It("is done for all conditions within the bound", func() {
		methods := slices.Repeat([]string{"GET"}, 100)
		methods[99] = "G T"
		Expect(fields((&model.Route{Service: "shop", Name: "root", Prefix: "/", Config: model.RouteConfig{Methods: methods}}).Validate())).To(Equal([]string{"Route_config.methods[99]"}))
	})

	DescribeTable("is bounded for a certificate", func(bits uint, says string) {
		errs := (&model.Secret{Name: "ca", Cert: rsaAuthority(bits)}).Validate()
		if says == "" {
			Expect(errs).To(BeEmpty())
			return
		}
		Expect(errs).To(ConsistOf(And(HaveField("Field", "Secret_cert"), HaveField("Message", ContainSubstring(says)))))
	},
		Entry("with an RSA key of 16,384 bits", uint(16384), ""),
		Entry("with an RSA key of 16,385 bits", uint(16385), "whose key is an RSA key of 16385 bits; at most 16384 are allowed"),
	)

	It("is bounded for a private key", func() {
		key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: make([]byte, 16385)}))
		Expect((&model.Secret{Name: "s", Cert: rsaAuthority(2048), PrivateKey: key}).Validate()).To(ContainElement(
			model.FieldError{Field: "Secret_key", Message: "has 16385 bytes; a key has at most 16384"}))
	})

	DescribeTable("is bounded for descriptors of rate limits", func(n int, says string) {
		list := strings.TrimSuffix(strings.Repeat(`{"remote_address":"client"},`, n), ",")
		errs := (&model.Filter{Name: "f", Type: model.FilterRateLimit, Config: model.JSON(fmt.Sprintf(`{"descriptors":[%s]}`, list))}).Validate()
		if says == "" {
			Expect(errs).To(BeEmpty())
			return
		}
		Expect(errs).To(ConsistOf(And(HaveField("Field", "Filter_config.descriptors"), HaveField("Message", says))))
	},
		Entry("1,000", 1000, ""),
		Entry("1,001", 1001, "has 1001 descriptors; at most 1000 are allowed"),
	)
})
