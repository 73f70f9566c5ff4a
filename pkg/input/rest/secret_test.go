package rest_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// pair is a certificate with its key, in PEM.
type pair struct{ cert, key, fingerprint string }

func newPair(host string) pair {
	GinkgoHelper()
	return newPairUntil(time.Date(2027, 2, 3, 4, 5, 6, 0, time.UTC), host)
}

func newPairUntil(end time.Time, host string) pair {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(der)
	return pair{
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), pemKey(key),
		"sha256:" + hex.EncodeToString(sum[:]),
	}
}

func pemKey(key crypto.PrivateKey) string {
	GinkgoHelper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// core is a part of a PEM text that occurs nowhere else.
func core(text string) string { return strings.Split(text, "\n")[1][20:50] }

func (p pair) json(sni string) string {
	return `{"data":{"core_db_secret":[{"secret_id":1,"secret_name":"shop","secret_type":"tls","secret_sni":"` + sni + `","fingerprint":"` + p.fingerprint +
		`","subject":"CN=shop.example.com","issuer":"CN=shop.example.com","host_names":["shop.example.com"],"not_after":"2027-02-03T04:05:06.000000+00:00","tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}]}}`
}

const (
	insertSecret  = `{"data":{"insert_core_db_secret":{"affected_rows":1}}}`
	updatedSecret = `{"data":{"update_core_db_secret":{"affected_rows":1}}}`
)

func emptySecret(secretType string) string {
	return `{"data":{"core_db_secret":[{"secret_id":1,"secret_name":"shop","secret_type":"` + secretType + `","secret_sni":"","fingerprint":"",` +
		`"subject":"","issuer":"","host_names":[],"not_after":null,"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}]}}`
}

// expectNoSecret looks for texts wherever they could have got to.
func (a *api) expectNoSecret(texts ...string) {
	GinkgoHelper()
	places := map[string]string{"database": a.stored(), "log": a.log.String()}
	for _, path := range []string{
		"/secret", "/secret/shop", "/filter", "/service/dump/shop", "/proxy/dump", "/revision", "/revision/1", "/revision/2", "/revision/3",
	} {
		got, _ := a.call(http.MethodGet, path, "", nil)
		places[path] = got.body
	}
	for place, held := range places {
		for _, text := range texts {
			Expect(held).NotTo(ContainSubstring(text), place)
		}
	}
}

var _ = Describe("Secrets", func() {
	It("can be created by name, with key and certificate uploaded later", func() {
		a, p := startAPI(), newPair("shop.example.com")
		a.post("/secret", "Secret_name=shop").expectWrite(201, insertSecret, "1")
		a.get("/secret/shop").expectJSON(200, emptySecret(""))
		contentType, body := multipartOf("@Secret_key", p.key)
		a.do(http.MethodPost, "/secret/shop/key", contentType, strings.NewReader(body)).expectWrite(200, updatedSecret, "2")
		a.get("/secret/shop").expectJSON(200, emptySecret("tls"))
		contentType, body = multipartOf("@Secret_cert", p.cert)
		a.do(http.MethodPost, "/secret/shop/cert", contentType, strings.NewReader(body)).expectWrite(200, updatedSecret, "3")
		a.get("/secret/shop").expectJSON(200, p.json(""))
		a.get("/secret").expectJSON(200, p.json(""))
		a.expectNoSecret(core(p.key))
		for _, path := range []string{"/secret/shop", "/secret"} {
			Expect(a.get(path).body).NotTo(ContainSubstring(core(p.cert)))
		}
	})

	It("can be created as a pair, and be replaced by another one", func() {
		a, p, other := startAPI(), newPair("shop.example.com"), newPair("shop.example.com")
		body, err := json.Marshal(map[string]string{"Secret_name": "shop", "Secret_cert": p.cert, "Secret_key": p.key, "Secret_sni": "shop.example.com"})
		Expect(err).NotTo(HaveOccurred())
		a.postJSON("/secret", string(body)).expectWrite(201, insertSecret, "1")
		a.get("/secret/shop").expectJSON(200, p.json("shop.example.com"))

		mismatch := `{"type":"urn:gatehouse:problem:invalid_fields","title":"Fields are missing or wrong","status":400,"detail":"a secret cannot be stored; see errors",` +
			`"instance":"PATH","code":"invalid_fields","errors":[{"field":"Secret_key","message":"does not belong to the certificate; send both in one call to replace both"}]}`
		for path, fields := range map[string]url.Values{
			"/secret/shop/key":  {"Secret_key": {other.key}},
			"/secret/shop/cert": {"Secret_cert": {other.cert}},
		} {
			a.post(path, fields.Encode()).expectProblem(400, strings.Replace(mismatch, "PATH", path, 1))
		}
		a.put("/secret/shop", url.Values{"Secret_cert": {p.cert}, "Secret_key": {other.key}}.Encode()).
			expectProblem(400, strings.Replace(mismatch, "PATH", "/secret/shop", 1))
		Expect(a.revision()).To(Equal(int64(1)))

		contentType, both := multipartOf("@Secret_key", other.key, "@Secret_cert", other.cert)
		a.do(http.MethodPost, "/secret/shop/cert", contentType, strings.NewReader(both)).expectWrite(200, updatedSecret, "2")
		a.get("/secret/shop").expectJSON(200, other.json("shop.example.com"))
		a.expectNoSecret(core(p.key), core(other.key))
	})

	It("are listed by certificate expiry, page by page", func() {
		a := startAPI()
		at := func(month time.Month) time.Time { return time.Date(2027, month, 1, 0, 0, 0, 0, time.UTC) }
		for i, end := range []time.Time{at(3), at(1), at(2), at(5)} {
			p := newPairUntil(end, "a.example")
			a.given("/secret", url.Values{"Secret_name": {fmt.Sprint("s", i)}, "Secret_cert": {p.cert}, "Secret_key": {p.key}}.Encode())
		}
		a.given("/secret", "Secret_name=empty", "/secret", "Secret_name=text&Secret_value=x")
		const name = "secret_name"
		Expect(a.walk("/secret?expires_before=2027-03-02", name)).To(Equal([][]string{{"s0", "s1", "s2"}}))
		Expect(a.walk("/secret?expires_before=2027-03-01T01:00:00%2B01:00", name)).To(Equal([][]string{{"s1", "s2"}}))
		Expect(a.walk("/secret?expires_before=2027-03-01T00:00:00.5Z&limit=2", name)).To(Equal([][]string{{"s0", "s1"}, {"s2"}}))
		Expect(a.walk("/secret?expires_before=65000d&name=s3", name)).To(Equal([][]string{{"s3"}}))
		Expect(a.walk("/secret?expires_before=0d", name)).To(Equal([][]string{{}}))
		for _, bad := range []string{"", "tomorrow", "-1d", "d", "30h", "2027-13-01", "99999999d"} {
			a.get("/secret?expires_before="+bad).expectProblem(400, invalid("/secret", "expires_before",
				`\"`+bad+`\" is not a date such as 2026-12-24, a time such as 2026-12-24T00:00:00Z, or a number of days such as 30d`))
		}
		a.get("/upstream?expires_before=30d").expectProblem(400, invalid("/upstream", "expires_before", "unknown query parameter; known parameters are limit, after, name, tag, status"))
	})

	It("can be any text", func() {
		a := startAPI()
		a.post("/secret", "Secret_name=shop&Secret_value=open+sesame").expectWrite(201, insertSecret, "1")
		Expect(a.get("/secret/shop").body).To(MatchRegexp(
			`^{"data":{"core_db_secret":\[{"secret_id":1,"secret_name":"shop","secret_type":"generic","secret_sni":"","fingerprint":"sha256:[0-9a-f]{64}","subject":"","issuer":"","host_names":\[\],"not_after":null,`))
		a.patch("/secret/shop", "Secret_value=other+sesame").expectWrite(200, updatedSecret, "2")
		a.patch("/secret/shop", "Secret_value=<redacted>&tags=x").expectWrite(200, updatedSecret, "3")
		a.get("/revision/3").expectJSON(200, `{"data":{"core_db_revision":[{"revision":3,"at":"`+timestamp+`","actor":"api","request":"PATCH /secret/shop",`+
			`"changes":[{"action":"update","path":"/secret/shop","kind":"secret","fields":[{"field":"tags","before":[],"after":["x"]}]}]}]}}`)
		Expect(a.get("/revision/2").body).To(ContainSubstring(`"fields":[{"field":"secret_value","before":"<redacted>","after":"<redacted>"},{"field":"fingerprint","before":"sha256:`))
		a.expectNoSecret("sesame")
		a.delete("/secret/shop").expectWrite(200, `{"data":{"delete_core_db_secret":{"affected_rows":1}}}`, "4")
	})

	It("are created and replaced as a whole, and keep what comes back redacted", func() {
		a := startAPI()
		a.put("/secret/shop", "Secret_value=open+sesame&tags=x").expectWrite(201, insertSecret, "1")
		a.put("/secret/shop", "Secret_value=<redacted>&tags=x").expectWrite(200, updatedSecret, "1") // nothing is different
		a.put("/secret/shop", "").expectWrite(200, updatedSecret, "2")
		a.get("/secret/shop").expectJSON(200, emptySecret(""))
	})

	DescribeTable("refuse a key that Envoy does not support", func(key func() string, message string) {
		a := startAPI()
		text := key()
		a.post("/secret", url.Values{"Secret_name": {"shop"}, "Secret_key": {text}}.Encode()).
			expectProblem(400, invalid("/secret", "Secret_key", message))
		a.given("/secret", "Secret_name=shop")
		contentType, body := multipartOf("@Secret_key", text)
		a.do(http.MethodPost, "/secret/shop/key", contentType, strings.NewReader(body)).
			expectProblem(400, invalid("/secret/shop/key", "Secret_key", message))
	},
		Entry("too small", func() string {
			key, err := rsa.GenerateKey(rand.Reader, 1024)
			Expect(err).NotTo(HaveOccurred())
			return pemKey(key)
		}, "is an RSA key of 1024 bits; Envoy needs 2048 or more"),
		Entry("of another type", func() string {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			Expect(err).NotTo(HaveOccurred())
			return pemKey(key)
		}, "is neither an RSA nor an ECDSA key; Envoy accepts no other"),
		Entry("on a small curve", func() string {
			key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
			Expect(err).NotTo(HaveOccurred())
			return pemKey(key)
		}, "is on the curve P-224; Envoy needs P-256, P-384 or P-521"),
		Entry("encrypted", func() string {
			return string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
		}, "is encrypted; decrypt it first (Gatehouse stores it sealed)"),
		Entry("encrypted, the old way", func() string {
			return string(pem.EncodeToMemory(&pem.Block{
				Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: []byte("x"),
			}))
		}, "is encrypted; decrypt it first (Gatehouse stores it sealed)"),
		Entry("a certificate", func() string { return newPair("x").cert },
			`contains a PEM block \"CERTIFICATE\"; only a private key is allowed here; send certificates as Secret_cert`),
		Entry("an empty block", func() string {
			return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
		}, "is not a private key in PKCS #8, PKCS #1 or SEC 1 form"),
		Entry("two keys", func() string { return newPair("x").key + newPair("x").key }, "contains 2 keys; only one is allowed"),
		Entry("truncated", func() string { return newPair("x").key[:100] }, "has a damaged PEM block, number 1 of 1: it is cut off, or is not base64"),
		Entry("without its beginning", func() string { return newPair("x").key[40:] }, "has the end of a PEM block without its beginning"),
		Entry("damaged base64", func() string { return strings.Replace(newPair("x").key, "M", "*", 1) },
			"has a damaged PEM block, number 1 of 1: it is cut off, or is not base64"),
		Entry("DER", func() string { return "0\x82\x01\xff" }, "contains text that is not valid UTF-8; it must be in PEM form (-----BEGIN ...), which openssl pkey -inform der makes from DER"),
		Entry("not PEM", func() string { return "hunter2" }, "contains no PEM key (-----BEGIN PRIVATE KEY-----)"),
	)

	It("accept an RSA key of 2048 bits", func() {
		a := startAPI()
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		Expect(err).NotTo(HaveOccurred())
		a.post("/secret", url.Values{"Secret_name": {"shop"}, "Secret_key": {pemKey(key)}}.Encode()).expectWrite(201, insertSecret, "1")
	})

	DescribeTable("are refused with", func(fields string, errs ...string) {
		a := startAPI()
		a.post("/secret", "Secret_name=shop&"+fields).expectProblem(400, invalid("/secret", errs...))
	},
		Entry(nil, "Secret_value=v&Secret_sni=a.example.com", "Secret_value", "cannot be combined with a certificate, a key or a host name"),
		Entry(nil, "Secret_type=tls&Secret_value=v", "Secret_type", `\"tls\" does not match what the secret contains`),
		Entry(nil, "Secret_type=x", "Secret_type", `\"x\" is not one of tls, generic`),
		Entry(nil, "Secret_cert=hunter2", "Secret_cert", "contains no PEM certificate (-----BEGIN CERTIFICATE-----)"),
		Entry(nil, "Secret_sni=a b", "Secret_sni", `\"a b\" is not a host name such as shop.example.com, *.example.com or *`),
	)

	It("are named in an invalid call, but never shown", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=shop&Secret_value=first-sesame")
		for _, body := range []string{
			"Secret_value=open-sesame&Secret_sni=x.example.com", "Secret_key=open-sesame", "Secret_cert=open-sesame",
			"Secret_value=sealed:v1:open-sesame", "Secret_value=open-sesame&Secret_value=open-sesame", "Secret_value=open-sesame&x=1",
		} {
			for _, method := range []string{http.MethodPut, http.MethodPatch} {
				got := a.do(method, "/secret/shop", form, strings.NewReader(body))
				Expect(got.status).To(Equal(400), body)
				Expect(got.body).NotTo(ContainSubstring("open-sesame"))
			}
		}
		got := a.do(http.MethodPut, "/secret/shop", "application/json", strings.NewReader(`{"Secret_value":{"a":"open-sesame"}}`))
		Expect(got.status).To(Equal(400))
		Expect(got.body).NotTo(ContainSubstring("open-sesame"))
		a.expectNoSecret("open-sesame", "first-sesame")
	})

	It("are attached to services and cannot be deleted meanwhile", func() {
		a := startAPI()
		a.given(everything()...)
		a.given("/secret", "Secret_name=s&Secret_value=v")
		a.post("/service/shop/secret/s", "").expectWrite(201, `{"data":{"insert_core_db_service_secret":{"affected_rows":1}}}`, "8")
		a.post("/service/shop/secret/s", "").expectWrite(200, `{"data":{"insert_core_db_service_secret":{"affected_rows":0}}}`, "8")
		Expect(a.get("/service/shop/secret").body).To(Equal(a.get("/secret/s").body))
		a.delete("/secret/s").expectProblem(409, conflict("in_use", "The object is in use", "/secret/s",
			`secret \"s\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/service/shop"]`))
		a.delete("/service/shop/secret/s").expectWrite(200, `{"data":{"delete_core_db_service_secret":{"affected_rows":1}}}`, "9")
		a.given("/upstream", "Upstream_name=t&Upstream_ip=::1&Upstream_port=1&Upstream_protocol=tls&Upstream_validation_cacertificate=s")
		a.delete("/secret/s").expectProblem(409, conflict("in_use", "The object is in use", "/secret/s",
			`secret \"s\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/upstream/t"]`))
		Expect(a.patch("/upstream/t", "Upstream_validation_cacertificate=").status).To(Equal(200))
		Expect(a.delete("/secret/s").status).To(Equal(200))
	})
})
