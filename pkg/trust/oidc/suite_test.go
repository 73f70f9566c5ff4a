package oidc_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

func TestOIDC(t *testing.T) {
	// The client must ignore it.
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "oidc")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
})

const (
	keyP256, keyEd25519 = testkit.KeyP256, testkit.KeyEd25519
	// setP256 is the first key as Envoy receives it.
	setP256 = `{"keys":[{"alg":"ES256","crv":"P-256","kid":"1","kty":"EC","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
)

// provider is an identity provider with the answers of a spec.
type provider struct{ *testkit.Provider }

func startProvider(o testkit.CertificateOptions) provider {
	GinkgoHelper()
	p, err := testkit.StartProvider(o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return provider{p}
}

func (p provider) source() model.ProviderSource {
	return model.ProviderSource{Issuer: p.Issuer(), Discover: true}
}

// client trusts the provider, and may connect to the loopback address.
func (p provider) client(change ...func(*oidc.Options)) *oidc.Client {
	GinkgoHelper()
	o := oidc.Options{Authorities: p.Authority.PEM, Rules: oidc.Rules{Allow: entries("127.0.0.0/8", "::1")}}
	for _, c := range change {
		c(&o)
	}
	return oidc.NewClient(o)
}

func entries(texts ...string) (list []egress.Entry) {
	GinkgoHelper()
	for _, text := range texts {
		e, err := egress.ParseEntry(text)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, e)
	}
	return list
}
