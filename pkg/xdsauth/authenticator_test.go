package xdsauth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/metadata"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xdsauth"
)

func TestXDSAuth(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
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
		Expect(id.Why()).To(Equal("the token was revoked"))
		id, err = ask(false, "bearer ghx_engine")
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{id.Name, id.Proxies, id.RateLimits, id.Any}).To(Equal([]any{"token limits", []string(nil), true, false}))
	})

	DescribeTable("is refused, even on an open port", func(authorization ...string) {
		for _, open := range []bool{false, true} {
			_, err := ask(open, authorization...)
			Expect(reasonOf(err)).To(Equal("token"))
			Expect(err).NotTo(MatchError(ContainSubstring("ghx_")))
		}
	},
		Entry("with an unknown token", "Bearer ghx_other"),
		Entry("with no token", "Bearer "),
		Entry("without any header", ""),
		Entry("with an extra space", "Bearer  ghx_edge"),
		Entry("with a trailing space", "Bearer ghx_edge "),
		Entry("with another scheme", "Basic ghx_edge"),
		Entry("without a scheme", "ghx_edge"),
		Entry("with two tokens", "Bearer ghx_edge", "Bearer ghx_edge"),
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
