package xdsauth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"google.golang.org/grpc/metadata"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

func TestXDSAuth(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "xdsauth")
}

// tokens are the existing tokens, by their text.
type tokens map[string]xdsauth.Token

func (t tokens) Find(_ context.Context, hash [sha256.Size]byte) (xdsauth.Token, bool) {
	for text, token := range t {
		if sha256.Sum256([]byte(text)) == hash {
			return token, true
		}
	}
	return xdsauth.Token{}, false
}

// reasonOf returns the reason of a refusal.
func reasonOf(err error) string {
	refusal := &server.Refusal{}
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	return ""
}

var _ = Describe("A client with a token", func() {
	known := tokens{
		"ghx_edge":   {Name: "laptop", Proxy: "edge", Revoked: make(chan struct{})},
		"ghx_engine": {Name: "limits", RateLimits: true, Revoked: make(chan struct{})},
	}
	ask := func(open bool, authorization ...string) (server.Identity, error) {
		a := xdsauth.New(xdsauth.Options{Open: open, Tokens: known})
		return a.Authenticate(metadata.NewIncomingContext(context.Background(), metadata.MD{"authorization": authorization}))
	}

	It("has the identity of the token", func() {
		id, err := ask(false, "Bearer ghx_edge")
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{id.Name, id.Proxies, id.RateLimits, id.Any}).To(Equal([]any{"token laptop", []string{"edge"}, false, false}))
		Expect(id.Ended).To(BeIdenticalTo(known["ghx_edge"].Revoked))
		Expect(id.Why()).To(Equal("the token was revoked"))
		id, err = ask(false, "bearer ghx_engine")
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{id.Name, id.Proxies, id.RateLimits, id.Any}).To(Equal([]any{"token limits", []string(nil), true, false}))
	})

	const (
		unknown = "the token is not valid here: it is mistyped or revoked"
		form    = "the authorization in the metadata is not of the form: Bearer TOKEN"
	)
	DescribeTable("is refused, even on an open port", func(says string, authorization ...string) {
		for _, open := range []bool{false, true} {
			_, err := ask(open, authorization...)
			Expect(reasonOf(err)).To(Equal("token"))
			Expect(err).To(MatchError(says))
		}
	},
		Entry("with an unknown token", unknown, "Bearer ghx_other"),
		Entry("with no token", unknown, "Bearer "),
		Entry("without any header", form, ""),
		Entry("with an extra space", unknown, "Bearer  ghx_edge"),
		Entry("with a trailing space", unknown, "Bearer ghx_edge "),
		Entry("with another scheme", form, "Basic ghx_edge"),
		Entry("without a scheme", form, "ghx_edge"),
		Entry("with only a scheme", form, "Bearer"),
		Entry("with two tokens", "there is more than one authorization in the metadata", "Bearer ghx_edge", "Bearer ghx_edge"),
	)

	It("needs a token, unless the port is open", func() {
		_, err := ask(false)
		Expect(reasonOf(err)).To(Equal("none"))
		id, err := ask(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(id.Any).To(BeTrue())
	})

	It("is refused if there are no tokens", func() {
		for _, open := range []bool{false, true} {
			_, err := xdsauth.New(xdsauth.Options{Open: open}).Authenticate(
				metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", "Bearer ghx_edge")))
			Expect(reasonOf(err)).To(Equal("token"))
		}
	})
})

var _ = Describe("A client with a certificate and a token", func() {
	proof := func(name string, rateLimits bool, proxies ...string) (server.Identity, chan struct{}) {
		ended := make(chan struct{})
		return server.Identity{Name: name, Proxies: proxies, RateLimits: rateLimits, Ended: ended, Why: func() string { return "the " + name + " ended" }}, ended
	}

	DescribeTable("may do what both allow", func(certificateLimits bool, certificateProxies []string, tokenLimits bool, tokenProxies []string, limits bool, proxies ...string) {
		certificate, _ := proof("certificate", certificateLimits, certificateProxies...)
		token, _ := proof("token", tokenLimits, tokenProxies...)
		id := xdsauth.Both(context.Background(), certificate, token)
		Expect([]any{id.Name, id.RateLimits, id.Any}).To(Equal([]any{"certificate and token", limits, false}))
		Expect(id.Proxies).To(HaveExactElements(proxies))
	},
		Entry("that of the token, if the certificate names nobody", false, nil, false, []string{"edge"}, false, "edge"),
		Entry("that of an engine's token, if the certificate names nobody", false, nil, true, nil, true),
		Entry("one proxy of several", false, []string{"a", "edge"}, false, []string{"edge"}, false, "edge"),
		Entry("no proxy", false, []string{"a"}, false, []string{"edge"}, false),
		Entry("rate limits", true, nil, true, nil, true),
		Entry("no rate limits with the token of a proxy", true, nil, false, []string{"edge"}, false),
		Entry("no rate limits with the certificate of a proxy", false, []string{"edge"}, true, nil, false),
		Entry("only what is the same", true, []string{"edge"}, false, []string{"edge"}, false, "edge"),
	)

	DescribeTable("loses both with one", func(first bool, why string) {
		certificate, certificateEnded := proof("certificate", false)
		token, tokenEnded := proof("token", false, "edge")
		id := xdsauth.Both(context.Background(), certificate, token)
		Consistently(id.Ended).WithTimeout(50 * time.Millisecond).ShouldNot(BeClosed())
		close(map[bool]chan struct{}{true: certificateEnded, false: tokenEnded}[first])
		Eventually(id.Ended).Should(BeClosed())
		Expect(id.Why()).To(Equal(why))
	},
		Entry("if the certificate ends", true, "the certificate ended"),
		Entry("if the token ends", false, "the token ended"),
	)

	It("is forgotten with its stream", func() {
		before := gleak.Goroutines()
		ctx, cancel := context.WithCancel(context.Background())
		certificate, _ := proof("certificate", false)
		token, _ := proof("token", false, "edge")
		id := xdsauth.Both(ctx, certificate, token)
		cancel()
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
		Expect(id.Ended).NotTo(BeClosed())
	})
})
