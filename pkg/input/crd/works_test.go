package crd_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// inClusterMode returns what serve --mode kubernetes makes of the objects of a document.
func inClusterMode(doc *document.Document, namespace string) (step translate.Step, made map[model.Key]model.Object) {
	GinkgoHelper()
	objects, _, err := crd.Export(doc, crd.ExportOptions{Namespace: namespace, Values: true})
	Expect(err).NotTo(HaveOccurred())
	var proxies []*model.Proxy
	for _, item := range doc.Items {
		if p, ok := item.Object.(*model.Proxy); ok {
			proxies = append(proxies, p)
		}
	}
	world := translate.New(proxies, nil)
	for _, o := range objects.Services {
		world.Upsert(o)
	}
	for _, o := range objects.Slices {
		world.Upsert(o)
	}
	for _, o := range objects.Filters {
		world.Upsert(o)
	}
	for _, o := range objects.GlobalConfigs {
		world.Upsert(o)
	}
	for _, o := range objects.Hosts {
		world.Upsert(o)
	}
	for refs := world.Settle(); len(refs) > 0; refs = world.Settle() {
		for _, ref := range refs {
			at := slices.IndexFunc(objects.Secrets, func(s *corev1.Secret) bool { return s.Name == ref.Name })
			Expect(at).NotTo(Equal(-1), "%s", ref)
			world.Upsert(objects.Secrets[at])
		}
	}
	step, made = world.Take(), map[model.Key]model.Object{}
	for _, op := range step.Ops {
		made[op.Key] = op.Object
	}
	return step, made
}

// settings returns an upstream without its name and address, which differ.
func settings(u *model.Upstream) model.Upstream {
	c := *u
	if c.SpeaksTLS() && !u.IsDNSName() && c.ValidationSubjectName == "" {
		c.ValidationSubjectName = u.IP
	}
	c.Name, c.IP, c.Tags, c.ValidationCACertificate, c.ClientCertificate = "", "", nil, "", ""
	return c
}

var _ = Describe("An exported configuration", func() {
	It("is the same in cluster mode", func() {
		compared := 0
		for seed := range uint64(100) {
			m := newMaker(seed)
			m.noSecrets = true
			doc := m.document()
			step, made := inClusterMode(doc, "shop")
			for ref, object := range step.Objects {
				for _, p := range object.Problems {
					Expect(p.Reason).To(Equal(translate.HostConflict), "seed %d: %s %s: %s", seed, ref, p.Path, p.Message)
				}
			}
			for _, item := range doc.Items {
				route, ok := item.Object.(*model.Route)
				if !ok {
					continue
				}
				for key, o := range made {
					r, ok := o.(*model.Route)
					// The names of services are hashed if Kubernetes does not accept them.
					if !ok || r.Name != route.Name || r.Prefix != route.Prefix || len(m.routesNamed(route.Name)) > 1 {
						continue
					}
					have, want := r.Config, route.Config
					Expect(have.Exempt == nil).To(Equal(want.Exempt == nil), "seed %d", seed)
					have.Exempt, want.Exempt = nil, nil // the names are those of the cluster
					Expect(have).To(Equal(want), "seed %d", seed)
					var haveUpstreams, wantUpstreams []model.Upstream
					for _, link := range item.Lists[model.KindRouteUpstream] {
						wantUpstreams = append(wantUpstreams, settings(m.items[model.UpstreamKey(link.Name)].Object.(*model.Upstream)))
					}
					for other, l := range made {
						if link, ok := l.(*model.RouteUpstream); ok && other.Owner() == key {
							haveUpstreams = append(haveUpstreams, settings(made[model.UpstreamKey(link.Upstream)].(*model.Upstream)))
						}
					}
					Expect(haveUpstreams).To(ConsistOf(wantUpstreams), "seed %d: %s", seed, key.Path())
					compared++
				}
			}
		}
		Expect(compared).To(BeNumerically(">", 50))
	})

	It("keeps its certificates and logins there", func() {
		authority, err := testkit.NewAuthority("laptop")
		Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example.com"}})
		Expect(err).NotTo(HaveOccurred())
		doc := parse(`
version: 1
upstreams:
- {upstream_name: Idp_1, upstream_ip: 192.0.2.9, upstream_port: 8443, upstream_protocol: tls, upstream_connect_timeoutseconds: 7}
- {upstream_name: blue, upstream_ip: 192.0.2.10, upstream_port: 8080}
secrets:
- {secret_name: Shop_TLS, secret_type: tls}
- {secret_name: cookies, secret_value: "01234567890123456789012345678901"}
- {secret_name: client, secret_value: abc}
- {secret_name: word, secret_value: another-long-word}
filters:
- filter_name: login
  filter_type: http_filter_oidc
  filter_config: {client_id: a, client_secret: "a text", cookie_secret: cookies, redirect_uri: "https://shop.example.com/callback", issuer: "https://idp.example.com", upstream: Idp_1}
- {filter_name: users, filter_type: http_filter_basicauth, filter_config: {users: [{name: Ann, password: correct-horse-battery}, {name: bob, password: {secret: word}}]}}
globalconfigs:
- globalconfig_name: Everybody
  globalconfig_type: globalconfig_oauth
  config:
    openid_connect:
      provider: {authorization_endpoint: "https://idp.example.com/authorize", token_endpoint: "https://idp.example.com/token"}
      client_id: a
      client_secret: client
      client_secret_namespace: elsewhere
      hmac_secret: cookies
      redirect_url: "https://%REQ(:authority)%/callback"
      redirect_path_matcher: /callback
    external_oauth_service: {name: idp.example.com, namespace: elsewhere, port: 443, protocol: tls}
services:
- {service_name: shop, fqdn: shop.example.com, https: redirect, secrets: [Shop_TLS], filters: [login], routes: [{route_name: root, route_prefix: /, upstreams: [blue], filters: [users]}]}
proxies:
- {name: edge, services: [shop], globalconfigs: [Everybody]}
`)
		for _, item := range doc.Items {
			if s, ok := item.Object.(*model.Secret); ok && s.Name == "Shop_TLS" {
				s.Cert, s.PrivateKey = pair.Cert, pair.Key
			}
		}
		step, made := inClusterMode(doc, "shop")
		Expect(step.Objects).To(HaveLen(4))
		for ref, object := range step.Objects {
			Expect(object.Problems).To(BeEmpty(), "%s", ref)
			Expect(object.Proxies).To(Equal([]string{"edge"}), "%s", ref)
		}
		// The names are those of Kubernetes, with the namespace; the hashes are of the old names.
		Expect(made[model.ServiceSecretKey("shop.shop", "shop.shop-tls-22fcdeff")]).NotTo(BeNil())
		login := made[model.FilterKey("shop.login")].(*model.Filter)
		Expect(login.Names()).To(ContainElements(model.SecretKey("shop.login.client-secret"), model.SecretKey("shop.cookies")))
		Expect(made[model.SecretKey("shop.login.client-secret")].(*model.Secret).Value).To(Equal("a text"))
		passwords := made[model.FilterKey("shop.users")].(*model.Filter).Names()
		Expect(passwords).To(HaveLen(2))
		Expect(made[passwords[0]].(*model.Secret).Value).To(Equal("correct-horse-battery"))
		Expect(passwords[1]).To(Equal(model.SecretKey("shop.word")))
		for _, key := range login.Names() {
			if key.Kind == model.KindUpstream {
				u := made[key].(*model.Upstream)
				Expect([]any{u.Protocol, u.ConnectTimeoutSeconds, u.ValidationSubjectName}).To(Equal([]any{"tls", 7, "192.0.2.9"}))
				Expect(step.Endpoints).To(HaveKey(key))
			}
		}
	})
})
