package snapshot_test

import (
	"encoding/json"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

func TestSnapshot(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Snapshot")
}

var _ = Describe("A resource as JSON", func() {
	DescribeTable("shows public keys of tokens, and no shared one", func(keys, shown string) {
		packed, err := anypb.New(&jwtv3.JwtAuthentication{Providers: map[string]*jwtv3.JwtProvider{"p": {
			JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: keys},
			}},
		}}})
		Expect(err).NotTo(HaveOccurred())
		r, err := snapshot.NewExtension(&corev3.TypedExtensionConfig{Name: "tokens", TypedConfig: packed})
		Expect(err).NotTo(HaveOccurred())
		text, err := r.JSON()
		Expect(err).NotTo(HaveOccurred())
		var out struct {
			Config struct {
				Providers map[string]struct {
					Keys struct {
						Text string `json:"inline_string"`
					} `json:"local_jwks"`
				}
			} `json:"typed_config"`
		}
		Expect(json.Unmarshal(text, &out)).To(Succeed())
		Expect(out.Config.Providers["p"].Keys.Text).To(Equal(shown))
	},
		Entry("a public one", `{"keys":[{"kty":"EC"}]}`, `{"keys":[{"kty":"EC"}]}`),
		Entry("a shared one", `{"keys":[{"alg":"HS256","k":"c2VjcmV0","kty":"oct"}]}`, "<redacted>"),
	)

	It("has Envoy's names, and nothing sensitive at any depth", func() {
		context, err := anypb.New(&tlsv3.UpstreamTlsContext{
			Sni: "shop.example",
			CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{
				CertificateChain: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "public"}},
				PrivateKey:       &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "s3cret"}},
				Password:         &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("s3cret")}},
			}}},
		})
		Expect(err).NotTo(HaveOccurred())
		r, err := snapshot.NewCluster(&clusterv3.Cluster{
			Name: "blue", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
			TransportSocket: &corev3.TransportSocket{
				Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: context},
			},
		})
		Expect(err).NotTo(HaveOccurred())

		Expect(r.JSON()).To(MatchJSON(`{"name":"blue","type":"STRICT_DNS","transport_socket":{"name":"tls","typed_config":{
			"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext","sni":"shop.example",
			"common_tls_context":{"tls_certificates":[{
				"certificate_chain":{"inline_string":"public"},
				"private_key":{"inline_string":"<redacted>"},
				"password":{"inline_bytes":"PHJlZGFjdGVkPg=="}}]}}}}`))
		Expect(string(r.Body.GetValue())).To(ContainSubstring("s3cret"), "what is sent to Envoy is unchanged")
	})
})
