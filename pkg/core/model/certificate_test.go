package model_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A certificate", func() {
	It("with the must-staple extension is refused", func() {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), DNSNames: []string{"shop.test"}, NotAfter: time.Now().Add(time.Hour),
			// RFC 7633: a list of one TLS feature, status_request (5).
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		Expect(err).NotTo(HaveOccurred())
		s := &model.Secret{Name: "shop", Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
		Expect(s.Validate()).To(ConsistOf(model.FieldError{Field: "Secret_cert", Message: "requires a stapled OCSP response (must-staple), " +
			"and Gatehouse sends none, so Envoy would refuse it; have it issued without must-staple"}))
	})
})
