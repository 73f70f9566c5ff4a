package crd_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// maker makes random configurations.
type maker struct {
	*rand.Rand
	names map[model.Kind][]string
	items map[model.Key]*document.Item
	pair  testkit.Pair // of the secrets
	// noSecrets makes no secrets, and nothing that needs one.
	noSecrets bool
}

// randomPair is the certificate of all random secrets: a seed always makes the same configuration.
var randomPair = sync.OnceValue(func() testkit.Pair {
	authority, err := testkit.NewAuthority("random")
	Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"a.example.com"}})
	Expect(err).NotTo(HaveOccurred())
	return pair
})

func newMaker(seed uint64) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(seed, 18)), names: map[model.Kind][]string{}, items: map[model.Key]*document.Item{}, pair: randomPair()} //nolint:gosec // a seeded test
}

func (m *maker) coin() bool { return m.IntN(2) == 0 }

func pick[T any](m *maker, list []T) T { return list[m.IntN(len(list))] }

// word returns one of the texts that a name can be.
func (m *maker) word() string {
	const letters = "abcxyzABC019._-"
	b := []byte{pick(m, []byte("abcxyzA0_"))}
	for range m.IntN(pick(m, []int{3, 8, 70})) {
		b = append(b, letters[m.IntN(len(letters))])
	}
	return string(b)
}

// name makes a new name of a kind.
func (m *maker) name(kind model.Kind) string {
	name := m.word()
	for slices.Contains(m.names[kind], name) {
		name += "x"
	}
	m.names[kind] = append(m.names[kind], name)
	return name
}

// one returns the name of an object of a kind or, sometimes, none.
func (m *maker) one(kind model.Kind) string {
	if len(m.names[kind]) == 0 || m.coin() {
		return ""
	}
	return pick(m, m.names[kind])
}

func (m *maker) tags() model.Tags {
	var tags []string
	for range m.IntN(3) {
		tags = append(tags, pick(m, []string{"team:shop", "v1.2", "a/b_c", "X-1"}))
	}
	return model.NewTags(tags)
}

// add adds an object, which must be valid, with links to objects of the kinds in its lists.
func (m *maker) add(o model.Object) {
	if _, secret := o.(*model.Secret); !secret { // they contain no real certificates
		Expect(o.Validate()).To(BeEmpty(), "%+v", o)
	}
	item := &document.Item{Object: o, Lists: map[model.Kind][]document.Link{}}
	for _, link := range o.Key().Kind.OwnedKinds() {
		if kind := link.Row().Attaches(); link == model.KindProxyFilter { // Kubernetes has none
			item.Lists[link] = []document.Link{}
		} else if kind != "" {
			item.Lists[link] = m.links(kind)
		}
	}
	m.items[o.Key()] = item
}

func (m *maker) links(kind model.Kind) []document.Link {
	links := []document.Link{}
	for _, name := range slices.Sorted(slices.Values(m.names[kind])) {
		if m.IntN(3) == 0 {
			links = append(links, document.Link{Name: name})
		}
	}
	return links
}

// document makes a complete configuration.
func (m *maker) document() *document.Document {
	for range m.IntN(4) {
		if !m.noSecrets {
			m.add(m.secret())
		}
	}
	for range m.IntN(6) {
		m.add(m.upstream())
	}
	for range m.IntN(2) {
		m.add(&model.List{
			Name: m.name(model.KindList) + ".list", Tags: m.tags(), Type: model.ListHeaders, Config: `{"response":{"set":{"x-a":"b < c"}}}`,
		})
	}
	for range m.IntN(4) {
		f := &model.Filter{Name: m.name(model.KindFilter), Tags: m.tags()}
		m.configure(f)
		m.add(f)
	}
	for range m.IntN(3) {
		g := &model.GlobalConfig{Name: m.name(model.KindGlobalConfig), Tags: m.tags()}
		m.configureGlobal(g)
		m.add(g)
	}
	for range m.IntN(5) {
		m.service()
	}
	for range m.IntN(4) {
		m.add(m.proxy())
	}
	doc := &document.Document{}
	for _, kind := range model.Kinds() {
		var keys []model.Key
		for key := range m.items {
			if key.Kind == kind {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b model.Key) int { return strings.Compare(a.Text(), b.Text()) })
		for _, key := range keys {
			doc.Items = append(doc.Items, m.items[key])
		}
	}
	return doc
}

// routesNamed returns the routes with that name.
func (m *maker) routesNamed(name string) (keys []model.Key) {
	for key := range m.items {
		if key.Kind == model.KindRoute && key.Name() == name {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *maker) secret() *model.Secret {
	s := &model.Secret{Name: m.name(model.KindSecret), Tags: m.tags()}
	switch m.IntN(6) {
	case 0:
		s.Type, s.Cert, s.PrivateKey = model.SecretTLS, m.pair.Cert, m.pair.Key
	case 1:
		s.Type, s.Cert, s.PrivateKey, s.SNI = model.SecretTLS, m.pair.Cert, m.pair.Key, "a.Example.com"
	case 2:
		s.Type, s.Cert = model.SecretTLS, m.pair.Cert
	case 3:
		s.Type, s.Value = model.SecretGeneric, pick(m, []string{"text", "with a line feed\n", "\x01 \u00e4", " "})
	case 4:
		s.Type = pick(m, []string{model.SecretTLS, model.SecretGeneric})
	}
	return s
}

// upstream returns an upstream with any value in each field.
func (m *maker) upstream() *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.Tags = m.name(model.KindUpstream), m.tags()
	u.IP = pick(m, []string{"192.0.2.7", "2001:db8::7", "2001:DB8:0::7", "blue.example.com", "Blue.Example.com", "blue.example.com.", "blue.internal"})
	u.Port = 1 + m.IntN(65535)
	some := func(n *int, low, high int) {
		if m.IntN(3) == 0 {
			*n = pick(m, []int{low, high, low + m.IntN(high-low+1)})
		}
	}
	some(&u.Weight, 0, 1_000_000)
	some(&u.Priority, 0, 7)
	some(&u.DNSRefreshSeconds, 0, 86400)
	some(&u.HCIntervalSeconds, 1, 86400)
	some(&u.HCTimeoutSeconds, 1, 86400)
	some(&u.HCUnhealthyThresholdCount, 1, 1000)
	some(&u.HCHealthyThresholdCount, 1, 1000)
	some(&u.ConnectTimeoutSeconds, 1, 3600)
	some(&u.IdleTimeoutSeconds, 0, 86400)
	some(&u.KeepaliveIntervalSeconds, 0, 7200)
	some(&u.MaxConnections, 1, 1_000_000)
	some(&u.MaxPending, 1, 1_000_000)
	some(&u.MaxRequests, 1, 1_000_000)
	some(&u.MaxRetries, 0, 1_000_000)
	some(&u.RetryBudgetPercent, 0, 100)
	some(&u.RetryBudgetMinCount, 0, 1_000_000)
	some(&u.OutlierThresholdCount, 0, 1000)
	some(&u.OutlierEjectionSeconds, 1, 3600)
	some(&u.PanicThresholdPercent, 0, 100)
	if u.HCType = pick(m, []string{model.HCTypeHTTP, model.HCTypeTCP}); u.HCType == model.HCTypeHTTP {
		u.HCPath, u.HCHost = pick(m, []string{"", "/health"}), pick(m, []string{"", "health.example.com"})
	}
	u.Strategy, u.Protocol = pick(m, model.Strategies()), pick(m, model.Protocols())
	u.Zone = pick(m, []string{"", "a"})
	u.DNS, u.DNSFamily = pick(m, model.DNSModes()), pick(m, model.DNSFamilies())
	u.ProxyProtocol = pick(m, model.ProxyProtocols())
	if u.Strategy == "round_robin" || u.Strategy == "least_request" {
		some(&u.ZoneMinCount, 0, 1000)
		some(&u.SlowStartSeconds, 0, 3600)
	}
	if u.SpeaksTLS() {
		u.ClientCertificate, u.ValidationSubjectName = m.one(model.KindSecret), pick(m, []string{"", "inner.example.com", "blue.example.com"})
		if u.TLSInsecure = m.coin(); !u.TLSInsecure {
			u.ValidationCACertificate = m.one(model.KindSecret)
			u.ValidationAltNames = pick(m, []string{"", "spiffe://example.com/blue,blue.example.com"})
		}
	}
	return u
}

func (m *maker) configure(f *model.Filter) {
	secret, upstream := m.one(model.KindSecret), m.one(model.KindUpstream)
	switch m.IntN(4) {
	case 0:
		f.Type, f.Config = model.FilterHeaders, `{"request":{"set":{"x-a":"b < c & d"}}}`
		if list := m.one(model.KindList); list != "" {
			f.Config = model.JSON(`{"lists":["` + list + `.list"]}`)
		}
	case 1:
		f.Type, f.Config = model.FilterRateLimit, `{"descriptors":[{"remote_address":"{}"}],"domain":"Shop"}`
	default:
		if secret == "" {
			f.Type, f.Config = model.FilterRateLimit, `{"per":"client","limit":"5/minute"}`
			break
		}
		client := fmt.Sprintf(`{"secret":%q}`, secret)
		if m.coin() {
			client = `"a <text> & more"`
		}
		if m.coin() {
			f.Type, f.Config = model.FilterBasicAuth, model.JSON(`{"users":[{"name":"ann","password":`+client+`},{"name":"Bob@example.com","password":{"secret":"`+secret+`"}}]}`)
			break
		}
		config := `{"redirect_uri":"https://a.example.com/callback","cookie_secret":"` + secret + `","client_id":"gatehouse","client_secret":` + client
		if upstream != "" {
			config += `,"upstream":"` + upstream + `"`
		}
		f.Type, f.Config = model.FilterOIDC, model.JSON(config+`,"issuer":"https://idp.example.com","scopes":["email"]}`)
	}
	if m.coin() {
		f.Type = model.ShortType(f.Type)
	}
	Expect(f.Validate()).To(BeEmpty(), "%s", f.Config)
}

func (m *maker) configureGlobal(g *model.GlobalConfig) {
	defer func() {
		if m.coin() {
			g.Type = model.ShortType(g.Type)
		}
	}()
	secret, upstream := m.one(model.KindSecret), m.one(model.KindUpstream)
	if secret == "" {
		g.Type, g.Config = model.GlobalConfigRateLimit, `{"domain":"shop","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":1}}]}`
		return
	}
	config := `{"openid_connect":{"provider":{"token_endpoint":"https://idp.example.com/token","authorization_endpoint":"https://idp.example.com/authorize"},` +
		`"client_id":"gatehouse","client_secret":"` + secret + `","hmac_secret":"` + secret + `","client_secret_namespace":"Other_1",` +
		`"redirect_url":"%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback","redirect_path_matcher":"/callback"`
	switch {
	case upstream != "":
		config += `,"upstream":"` + upstream + `"}}`
	case m.coin():
		config += `},"external_oauth_service":{"name":"Idp.example.com","namespace":"idp","port":443,"protocol":"tls"}}`
	default:
		config += `}}`
	}
	g.Type, g.Config = model.GlobalConfigOAuth, model.JSON(config)
}

func (m *maker) service() {
	s := model.NewService()
	s.Name, s.Tags, s.Public = m.name(model.KindService), m.tags(), m.coin()
	s.FQDN = pick(m, []string{"*", "*.example.com", "Shop.example.com", "_a.example.com", "localhost"})
	s.HTTPS, s.HSTSSeconds = pick(m, []string{"both", "redirect", "only"}), pick(m, []int{0, 1, 315_360_000})
	s.HSTSSubdomains = s.HSTSSeconds > 0 && m.coin()
	if s.FQDN != "*" {
		s.ClientCACertificate = m.one(model.KindSecret)
	}
	if m.IntN(6) == 0 {
		m.l4(s)
		return
	}
	m.add(s)
	names := map[string]bool{}
	for range m.IntN(4) {
		r := m.route(s.Name)
		if !names[r.Name] {
			m.add(r)
		}
		names[r.Name] = true
	}
}

// l4 adds a service as one of a mode other than http, without what such a service cannot have.
func (m *maker) l4(s *model.Service) {
	*s = model.Service{Name: s.Name, Tags: s.Tags, HTTPS: model.HTTPSBoth, FQDN: "*", Port: m.IntN(65535) + 1}
	s.Mode = pick(m, []string{model.ModeTCP, model.ModeTLS, model.ModeUDP})
	if s.Mode == model.ModeTLS {
		s.FQDN, s.Port = pick(m, []string{"*.example.com", "Shop.example.com"}), m.IntN(2)*s.Port
	}
	m.add(s)
	r := &model.Route{Service: s.Name, Name: m.word(), Prefix: "/", Tags: m.tags()}
	if m.coin() {
		r.Config.Timeouts = &model.Timeouts{Idle: model.Duration(time.Minute), Stream: model.Duration(time.Hour)}
	}
	m.add(r)
	for _, key := range []model.Key{s.Key(), r.Key()} {
		for list := range m.items[key].Lists {
			m.items[key].Lists[list] = []document.Link{}
		}
	}
}

func (m *maker) route(service string) *model.Route {
	r := &model.Route{Service: service, Name: m.word(), Prefix: pick(m, []string{"/", "/shop", "/a%20b"}), Tags: m.tags()}
	c := &r.Config
	c.Match, c.Public = pick(m, []string{"", "exact", "segment", "template", "regex"}), m.coin()
	if c.Match == model.MatchTemplate {
		r.Prefix = "/a/{id}/{rest=**}"
	}
	for _, method := range []string{"GET", "PROPFIND", "M-SEARCH"} {
		if m.IntN(3) == 0 {
			c.Methods = append(c.Methods, method)
		}
	}
	if m.coin() {
		c.Ports = []int{8080, 8081}
	}
	for range m.IntN(3) {
		c.Headers = append(c.Headers, m.match(pick(m, []string{"X-A", ":authority"})))
		query := m.match("q")
		query.Invert = false
		c.Query = append(c.Query, query)
	}
	switch m.IntN(4) {
	case 0:
		c.Rewrite = &model.Rewrite{Regex: "^/(.*)$", Substitution: `/b/\1`, Host: "inner.example.com"}
	case 1:
		c.Rewrite = &model.Rewrite{Host: "inner.example.com"}
		switch c.Match {
		case "regex":
		case model.MatchTemplate:
			c.Rewrite.Template = "/b/{rest}/{id}"
		default:
			c.Rewrite.Prefix = "/b"
		}
	}
	if m.coin() {
		c.Timeouts = &model.Timeouts{Request: m.duration(), Idle: m.duration(), GRPC: m.duration(), Stream: m.duration()}
	}
	if m.coin() {
		c.Retries = &model.Retries{Attempts: m.IntN(101), PerTry: m.duration(), On: pick(m, [][]string{nil, {"5xx", "reset"}})}
		if m.coin() {
			c.Methods, c.Retries.Attempts, c.Retries.PerTry, c.Retries.Methods, c.Retries.Hedge = []string{"GET"}, 1, model.Duration(time.Second), []string{"GET"}, true
		}
		if m.coin() {
			c.Retries.Backoff, c.Retries.MaxBackoff = model.Duration(time.Millisecond), model.Duration(time.Hour)
		}
	}
	if m.coin() {
		c.Priority = 1 + m.IntN(100_000_000)
	}
	if filter := m.one(model.KindFilter); filter != "" {
		c.Exempt = &model.Exempt{Service: []string{filter}}
	}
	if m.coin() {
		websocket := m.coin()
		c.Websocket = &websocket
	}
	return r
}

func (m *maker) match(name string) model.ValueMatch {
	v, text := model.ValueMatch{Name: name, Invert: m.coin()}, pick(m, []string{"a", "a b", "\u00e4"})
	switch m.IntN(4) {
	case 0:
		v.Exact = &text
	case 1:
		v.Prefix = &text
	case 2:
		v.Regex = &text
	}
	return v
}

func (m *maker) duration() model.Duration {
	return model.Duration(pick(m, []time.Duration{0, 1500 * time.Millisecond, 24 * time.Hour, time.Microsecond, 90*time.Second + 1}))
}

func (m *maker) proxy() *model.Proxy {
	p := model.NewProxy()
	p.Name, p.Tags, p.HTTPPort, p.TrustedHops = m.name(model.KindProxy), m.tags(), 1+m.IntN(8000), m.IntN(3)
	p.ListenIP, p.TLSMinVersion = pick(m, []string{"0.0.0.0", "::"}), pick(m, []string{"1.2", "1.3"})
	return p
}
