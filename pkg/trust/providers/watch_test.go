package providers_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
)

// The key set with testkit.KeyP256, and with both keys, as Envoy receives them.
const (
	setP256 = `{"keys":[{"alg":"ES256","crv":"P-256","kid":"1","kty":"EC","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
	setBoth = `{"keys":[{"alg":"ES256","crv":"P-256","kid":"1","kty":"EC","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"},` +
		`{"alg":"EdDSA","crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
)

// asked returns how often the provider was asked.
func asked(w *world) int { return len(w.Asked) }

func unavailable(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

var _ = Describe("A watch of providers", func() {
	login := model.FilterKey("login")

	// known is the answer of a correct provider.
	known := func(w *world) *model.Provider {
		return &model.Provider{
			Source:                model.ProviderSource{Issuer: w.Issuer(), Discover: true},
			AuthorizationEndpoint: w.Issuer() + "/auth", TokenEndpoint: w.Issuer() + "/token", EndSessionEndpoint: w.Issuer() + "/end",
			JWKSURI: w.Issuer() + "/keys", JWKS: setP256,
		}
	}

	It("fetches immediately for a login that a service has, and for no other", func() {
		w := newWorld(slow())
		w.put(append(w.shop(), w.login("other", "issuer", w.Issuer()+"/other"))...)
		Expect(w.learn(login)).To(Equal(known(w)))
		Expect(w.Asked).To(HaveLen(2), "the document and the keys")
		Expect(w.Settle(context.Background(), []model.Key{model.FilterKey("other"), model.SecretKey("cookies")})).To(BeFalse(), "nothing is fetched for it")
	})

	It("fetches once for all that need it, and stops when none does", func() {
		w := newWorld(quick())
		w.put(append(w.shop(), w.login("again"), &model.ServiceFilter{Service: "shop", Filter: "again"})...)
		first := w.learn(login)
		Expect(w.read().Learned).To(BeEmpty(), "the other came with it")
		Expect(first).To(Equal(known(w)))
		w.remove(model.NewKey(model.KindServiceFilter, "shop", "again"))
		Expect(w.learn(model.FilterKey("again"))).To(BeNil())
		w.remove(model.NewKey(model.KindServiceFilter, "shop", "login"))
		Expect(w.learn(login)).To(BeNil())
		Expect(w.Reports()).To(BeEmpty())
		w.put(&model.ServiceFilter{Service: "shop", Filter: "login"})
		Expect(w.learn(login)).To(Equal(known(w)))
	})

	It("fetches for a global config that is attached to no proxy, because it applies to all", func() {
		w := newWorld(slow())
		w.put(w.shop()[0], &model.Secret{Name: "client", Type: model.SecretGeneric, Value: "s3cret"}, &model.GlobalConfig{
			Name: "login", Type: model.GlobalConfigOAuth, Config: model.JSON(`{"openid_connect":{"provider":{"issuer":"` + w.Issuer() + `"},"client_id":"a",` +
				`"client_secret":"client","hmac_secret":"cookies","redirect_url":"/callback","redirect_path_matcher":"/callback"}}`),
		})
		Expect(w.learn(model.GlobalConfigKey("login"))).To(Equal(known(w)))
	})

	It("reports everything that it knows after a change, and nothing if nothing changes", func() {
		w := newWorld(quick())
		w.put(w.shop()...)
		Expect(w.learn(login)).To(Equal(known(w)))
		Eventually(asked).WithArguments(w).Should(BeNumerically(">=", 20))
		Expect(w.Changed()).NotTo(Receive())
		Expect(w.read().Learned).To(BeEmpty())
		w.at = model.Mark{}
		Expect(w.read().Learned).To(HaveKeyWithValue(login, ConsistOf(known(w))))
	})

	It("keeps what a provider said while it fails, and reports the failure until it answers again", func() {
		w := newWorld(quick())
		w.put(w.shop()...)
		w.learn(login)
		from := w.status.Feed().Now()
		w.HandleDocument(unavailable)
		failing := known(w)
		failing.Fault = "the discovery document " + w.Issuer() + "/.well-known/openid-configuration is answered with 503: check the provider"
		Expect(w.learn(login)).To(Equal(failing))
		const at = `[0-9-]{10} [0-9:]{8} UTC`
		Eventually(w.conditions).Should(ConsistOf(
			MatchRegexp(`^/filter/login ProviderFailing: the identity provider fails since `+at+`: the discovery document \S+ is answered with 503: check the provider; logins continue with its answer of `+at+`$`),
			MatchRegexp(`^/service/shop ProviderFailing: the identity provider of filter "login" fails since `+at+`: `),
		))
		Eventually(func() []providers.Report { return w.Reports() }).Should(ConsistOf(And(
			HaveField("Object", "/filter/login"), HaveField("Failures", BeNumerically(">", 2)), HaveField("Age", BeNumerically(">", 0)))))
		w.SetDocument(w.Document(w.Issuer()))
		Expect(w.learn(login)).To(Equal(known(w)))
		Eventually(w.conditions).Should(BeEmpty())
		Expect(w.events(from)).To(Equal([]string{
			"/filter/login ProviderFailing: " + failing.Fault, "/filter/login : the identity provider " + w.Issuer() + " answers again",
		}))
	})

	It("reports that nobody can log in if a provider has never answered", func() {
		w := newWorld(quick())
		w.HandleDocument(unavailable)
		w.put(w.shop()...)
		Expect(w.learn(login)).To(And(HaveField("Fault", ContainSubstring("is answered with 503")), HaveField("JWKS", ""), HaveField("TokenEndpoint", "")))
		Eventually(w.conditions).Should(ContainElement(HaveSuffix("; nobody can log in before it answers")))
		Expect(w.Reports()).To(ConsistOf(HaveField("Age", BeNumerically("<", 0))))
		w.SetDocument(w.Document(w.Issuer()))
		Expect(w.learn(login)).To(Equal(known(w)))
	})

	It("also fetches for the tokens of a route, and reports what fails there", func() {
		w := newWorld(quick())
		w.Handle("/keys", unavailable)
		api := model.FilterKey("api")
		w.put(append(w.shop(), &model.Filter{Name: "api", Type: model.FilterJWT, Config: model.JSON(`{"issuer":"us","jwks_uri":"` + w.Issuer() + `/keys"}`)},
			&model.Route{Service: "shop", Name: "root", Prefix: "/"})...)
		w.remove(model.NewKey(model.KindServiceFilter, "shop", "login"))
		Expect(w.Reports()).To(BeEmpty(), "nothing has it")
		w.put(&model.RouteFilter{Service: "shop", Route: "root", Filter: "api"})
		Expect(w.learn(api)).To(And(HaveField("Fault", ContainSubstring("is answered with 503")), HaveField("JWKS", "")))
		Eventually(w.conditions).Should(ConsistOf(
			MatchRegexp(`^/filter/api ProviderFailing: .*; none of its tokens is accepted before it answers$`),
			MatchRegexp(`^/service/shop/route/root ProviderFailing: the identity provider of filter "api" fails since .*; none of its tokens is accepted before it answers$`),
		))
		w.SetKeys(testkit.KeyP256)
		Expect(w.learn(api)).To(HaveField("JWKS", setP256))
		w.Handle("/keys", unavailable)
		Eventually(w.conditions).Should(ContainElement(ContainSubstring("; tokens are verified with its answer of ")))
		Expect(w.read().Learned).To(HaveKeyWithValue(api, ConsistOf(HaveField("JWKS", setP256))))

		w.remove(model.NewKey(model.KindRouteFilter, "shop", "root", "api"))
		Expect(w.learn(api)).To(BeNil())
		w.SetKeys(testkit.KeyP256)
		w.put(&model.Proxy{Name: "gw", HTTPPort: 80, HTTPSPort: 443, ListenIP: "::"}, &model.ProxyFilter{Proxy: "gw", Filter: "api"})
		Expect(w.learn(api)).To(HaveField("JWKS", setP256), "of a proxy")
	})

	It("asks each of several issuers, and reports which one fails", func() {
		w := newWorld(quick())
		w.Handle("/keys", unavailable)
		api := model.FilterKey("api")
		w.put(append(w.shop(), &model.Filter{Name: "api", Type: model.FilterJWT, Config: model.JSON(`{"issuer":"us","jwks_uri":"` + w.Issuer() + `/keys",` +
			`"other_issuers":[{"issuer":"them","jwks_uri":"` + w.Issuer() + `/theirs"},{"issuer":"you","hmac_key":{"secret":"cookies"}},{"issuer":"they","jwks_uri":"` + w.Issuer() + `/keys"}]}`)},
			&model.ServiceFilter{Service: "shop", Filter: "api"})...)
		w.remove(model.NewKey(model.KindServiceFilter, "shop", "login"))
		w.Serve("/theirs", `{"keys":[`+testkit.KeyP256+`]}`)
		of := func(path string) types.GomegaMatcher { return HaveField("Source.JWKSURI", w.Issuer()+path) }
		Eventually(func() model.Providers { return w.learnAll(api) }).Should(HaveExactElements(
			And(of("/keys"), HaveField("Fault", ContainSubstring("503")), HaveField("JWKS", "")), And(of("/theirs"), HaveField("JWKS", setP256), HaveField("Fault", "")),
		))
		Eventually(w.conditions).Should(ContainElement(MatchRegexp(`^/filter/api ProviderFailing: .*/keys.*; none of its tokens is accepted before it answers$`)))
		Expect(w.conditions()).NotTo(ContainElement(ContainSubstring("/theirs")))
		w.SetKeys(testkit.KeyP256)
		Eventually(func() model.Providers { return w.learnAll(api) }).Should(HaveExactElements(
			And(of("/keys"), HaveField("JWKS", setP256)), And(of("/theirs"), HaveField("JWKS", setP256)),
		))
	})

	It("fetches less often the longer a provider fails", func() {
		times := slow()
		times.FirstRetry, times.LastRetry = 20*time.Millisecond, time.Hour
		w := newWorld(times)
		w.HandleDocument(unavailable)
		began := time.Now()
		w.put(w.shop()...)
		w.learn(login)
		Eventually(asked).WithArguments(w).Should(BeNumerically(">=", 5))
		// 20, 40, 80 and 160 ms, minus up to a tenth.
		Expect(time.Since(began)).To(BeNumerically(">=", 270*time.Millisecond))
	})

	It("fetches when the answer expires, within bounds", func() {
		times := slow()
		times.Least = 10 * time.Millisecond
		w := newWorld(times)
		w.Handle("/keys", func(to http.ResponseWriter, _ *http.Request) {
			to.Header().Set("Cache-Control", "max-age=1")
			_, _ = to.Write([]byte(`{"keys":[` + testkit.KeyP256 + `]}`))
		})
		w.put(w.shop()...)
		w.learn(login)
		Eventually(asked).WithArguments(w).Should(BeNumerically(">=", 4))
	})

	It("fetches immediately for an unknown key, but not for each one", func() {
		times := slow()
		times.Apart = 50 * time.Millisecond
		w := newWorld(times)
		w.put(w.shop()...)
		w.learn(login)
		began := time.Now()
		w.SetKeys(testkit.KeyEd25519, testkit.KeyP256)
		from := w.status.Feed().Now()
		for range 100 {
			w.Refresh(login)
			w.Refresh(model.FilterKey("other"))
		}
		Expect(w.learn(login).JWKS).To(Equal(setBoth))
		Expect(w.events(from)).To(Equal([]string{"/filter/login : the identity provider " + w.Issuer() + " has other keys"}))
		for len(w.Asked) < 12 { // five more times
			w.Refresh(login)
		}
		Expect(time.Since(began)).To(BeNumerically(">=", 200*time.Millisecond))
	})

	It("fetches in another way as soon as the upstream, or one of its secrets, changes", func() {
		w := newWorld(slow())
		other, err := testkit.NewAuthority("other")
		Expect(err).NotTo(HaveOccurred())
		objects := w.shop()
		objects[1] = w.login("login", "upstream", "idp")
		idp := model.NewUpstream()
		idp.Name, idp.IP, idp.Port, idp.Protocol, idp.ValidationCACertificate = "idp", "127.0.0.1", w.Port(), "tls", "ca"
		w.put(append([]model.Object{&model.Secret{Name: "ca", Type: model.SecretTLS, Cert: other.PEM}, idp}, objects...)...)
		Expect(w.learn(login).Fault).To(ContainSubstring(`is not signed by any of the authorities of secret "ca"`))
		w.put(&model.Secret{Name: "ca", Type: model.SecretTLS, Cert: w.Authority.PEM})
		Expect(w.learn(login)).To(And(HaveField("Fault", ""), HaveField("JWKS", setP256)))
		moved := *idp
		moved.Port = 1
		w.put(&moved)
		Expect(w.learn(login).Fault).To(ContainSubstring(`127.0.0.1 (upstream "idp", port 1) refuses connections`))
	})

	It("still knows after a restart what a provider said before, even if it is away", func() {
		w := newWorld(quick())
		w.put(w.shop()...)
		w.learn(login)
		w.stop()
		w.HandleDocument(unavailable)
		w.start(slow())
		Expect(w.read().Learned).To(HaveKeyWithValue(login, ConsistOf(known(w))))
		Expect(w.learn(login)).To(HaveField("Fault", Not(BeEmpty())))
		Expect(w.conditions()).To(ContainElement(ContainSubstring("; logins continue with its answer of ")))
		w.start(slow())
		Expect(w.read().Learned).To(HaveKeyWithValue(login, ConsistOf(known(w))), "a failure does not take the note")
	})

	It("forgets the answers of another issuer", func() {
		w := newWorld(slow())
		w.put(w.shop()...)
		w.learn(login)
		w.SetDocument(w.Document(w.Issuer() + "/"))
		w.put(w.login("login", "issuer", w.Issuer()+"/"))
		Expect(w.learn(login)).To(BeNil())
		Expect(w.learn(login)).To(And(HaveField("Source.Issuer", w.Issuer()+"/"), HaveField("JWKS", setP256)))
	})

	It("delays nobody while a provider is slow", func() {
		w := newWorld(slow())
		w.HandleDocument(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.put(w.shop()...)
		Eventually(w.Changed()).Should(Receive())
		Expect(w.read().Learned).To(BeEmpty())
		Eventually(w.Asked).Should(HaveLen(1))
		w.put(&model.Secret{Name: "x"})
		Eventually(w.Changed()).Should(Receive())
		Expect(w.read().Entries).To(HaveLen(1))

		short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		Expect(w.Settle(short, []model.Key{login})).To(BeTrue())
		Expect(short.Err()).To(HaveOccurred(), "it has waited")
		// Goroutines end, too, which suite_test.go checks.
	})

	It("releases those who wait after the first answer, whatever it is", func() {
		w := newWorld(slow())
		answer := make(chan struct{})
		w.HandleDocument(func(to http.ResponseWriter, _ *http.Request) {
			<-answer
			to.WriteHeader(http.StatusServiceUnavailable)
		})
		w.put(w.shop()...)
		Eventually(w.Changed()).Should(Receive())
		w.read()
		settled := make(chan bool)
		for _, key := range []model.Key{login, model.NewKey(model.KindServiceFilter, "shop", "login")} {
			go func() { settled <- w.Settle(context.Background(), []model.Key{key}) }()
		}
		Consistently(settled, 20*time.Millisecond).ShouldNot(Receive())
		close(answer)
		Eventually(settled).Should(Receive(BeTrue()))
		Eventually(settled).Should(Receive(BeTrue()))
		Expect(w.read().Learned[login][0].Fault).To(ContainSubstring("503"))
		Expect(w.Settle(context.Background(), []model.Key{login})).To(BeTrue(), "and immediately from then on")
	})

	It("releases those who wait when the login is removed", func() {
		w := newWorld(slow())
		w.HandleDocument(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.put(w.shop()...)
		w.read()
		settled := make(chan bool)
		go func() { settled <- w.Settle(context.Background(), []model.Key{login}) }()
		Eventually(w.Asked).Should(HaveLen(1))
		w.remove(model.NewKey(model.KindServiceFilter, "shop", "login"))
		w.read()
		Eventually(settled).Should(Receive())
	})
})
