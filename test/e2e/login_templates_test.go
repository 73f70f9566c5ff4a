package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// templates is how many random redirects are tried: GATEHOUSE_TEST_TEMPLATES, or a number
// that suits a run with the other tests.
func templates() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_TEMPLATES")); err == nil {
		return n
	}
	return 300
}

// templatesOfOne is how many hosts one Envoy has, each with a redirect of its own.
const templatesOfOne = 500

// templateParts are parts of redirects, including some that might crash an Envoy.
var templateParts = []string{ //nolint:gochecknoglobals // never written: a constant
	"https://shop.example.com/callback", "http://127.0.0.1:8080/cb", "https://[2001:db8::1]:8443/cb", "/callback", "/a/b/c", "%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback",
	"https://%REQ(:authority)%/oauth2/callback", "%REQ(x-forwarded-proto)%://a.example/cb",
	"https://", "http://", "HTTPS://", "://", "shop.example.com", "localhost", "[::1]", "[::ffff:192.0.2.1]", "192.0.2.1", "a-b.c_d.example", "xn--bcher-kva.example",
	":443", ":1", ":65535", ":0", ":99999", ":", "@", "user:pw@",
	"%REQ(x-forwarded-proto)%", "%REQ(:authority)%", "%req(X-FORWARDED-PROTO)%", "%Req(:Authority)%", "%REQ(:path)%", "%REQ(host)%", "%REQ(x?y)%", "%REQ(x):3%", "%REQ(", "%REQ()%", "%REQ(x",
	"%FOO%", "%START_TIME(%Y)%", "%DOWNSTREAM_REMOTE_ADDRESS%", "%RESP(x)%", "%PROTOCOL%", "%DYNAMIC_METADATA(a:b)%", "%FILTER_STATE(x:PLAIN)%", "%HOSTNAME%", "%CEL(request.path)%", "%ENVIRONMENT(PATH)%",
	"%", "%%", "%%%", "%2", "%20", "%2f", "%%20", "%25", "%zz", "100%", ")%", "(", "{x}", "$(x)", "${x}", "{{x}}",
	"/", "//", "/.", "/..", "/../", "/./", "/;x", ";", "?", "?a=b", "#x", "&", "=", "+", "*", "'", "!", "~", ",", "..", "...", ".well-known", "\\", "\"", "<", ">", "|", "^", "`", " ", "\t", "\n", "\r", "\x00", "\x7f",
	"\u00fc", "\u2028", "\u202e", "\U0001f511", "\ufffd", "e\u0301", "a", "Z", "9", "-", "_", "callback", "CallBack",
}

// template returns a random redirect: a valid one, or parts of several, with mistakes.
func template(r *rand.Rand) string {
	part := func() string { return templateParts[r.IntN(len(templateParts))] }
	s := templateParts[r.IntN(8)]
	if r.IntN(8) == 0 {
		s = part()
	}
	for range r.IntN(4) {
		at := r.IntN(len(s) + 1)
		switch end := at + r.IntN(min(len(s)-at, 5)+1); r.IntN(6) {
		case 0:
			s = s[:at] + s[end:]
		case 1:
			s = s[:at] + part() + s[end:]
		case 2:
			s = s[:at] + strings.ToUpper(s[at:end]) + s[end:]
		case 3:
			s = s[:at] + string(rune(r.IntN(0x7f))) + s[at:]
		case 4:
			s += part()
		default:
			s += strings.Repeat([]string{"a", "/a", "%41", "a.", "%%"}[r.IntN(5)], r.IntN(300))
		}
	}
	return strings.ToValidUTF8(s, "\ufffd") // as in JSON
}

// templated returns a login with a redirect, and with random URLs and a random path.
func templated(r *rand.Rand, redirect string) *model.Filter {
	link := func(otherwise string) string {
		s := "https://login.example.com:8443/a/b?c=d"
		for range r.IntN(4) {
			at := r.IntN(len(s) + 1)
			s = s[:at] + templateParts[r.IntN(len(templateParts))] + s[at:]
		}
		if s = strings.ToValidUTF8(s, "\ufffd"); model.CheckLoginURL(s) != nil {
			return otherwise
		}
		return s
	}
	config := map[string]any{
		"client_id": "shop", "client_secret": "open sesame", "cookie_secret": "cookies", "redirect_uri": redirect,
		"authorization_endpoint": link("https://login.example.com/auth"),
		// No request is sent there: a name would have to be resolved, and TLS needs
		// authorities.
		"token_endpoint": regexp.MustCompile(`^https?://[^/?#]*`).ReplaceAllString(link("https://login.example.com/token"), "http://127.0.0.1:9"),
	}
	if end := link(""); end != "" {
		config["end_session_endpoint"] = end
	}
	f := &model.Filter{Name: "login", Type: model.FilterOIDC}
	for _, path := range []string{template(r), "/logout"} {
		config["logout_uri"] = path
		text, err := json.Marshal(config)
		Expect(err).NotTo(HaveOccurred())
		f.Config = model.JSON(text)
		if len(f.Validate()) == 0 {
			break
		}
	}
	return f
}

// templatedHosts returns the configuration of a proxy with a service for each login.
func templatedHosts(port int, logins []*model.Filter) model.Change {
	proxy, cookies := model.NewProxy(), &model.Secret{Name: "cookies", Type: model.SecretGeneric, Value: "sealed:v1:x"}
	proxy.Name, proxy.ListenIP, proxy.HTTPPort = "gw", "127.0.0.1", port
	backend := model.NewUpstream()
	backend.Name, backend.IP, backend.Port = "nobody", "127.0.0.1", 9
	objects := []model.Object{proxy, cookies, backend}
	for i, f := range logins {
		name := hostOf(i)
		f.Name = name
		objects = append(objects, &model.Service{Name: name, FQDN: name, HTTPS: model.HTTPSBoth}, f,
			&model.Route{Service: name, Name: "root", Prefix: "/"}, &model.RouteUpstream{Service: name, Route: "root", Upstream: "nobody"},
			&model.ServiceFilter{Service: name, Filter: name}, &model.ProxyService{Proxy: "gw", Service: name})
	}
	change := model.Change{Revision: 1, Full: true}
	for i, o := range objects {
		*o.Meta().ID = int64(i + 1)
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	return change
}

func hostOf(i int) string { return fmt.Sprintf("h%d.example", i) }

// staticBootstrap returns a snapshot as a static bootstrap: Envoy accepts all of it or
// none, and needs no control plane.
func staticBootstrap(s *snapshot.Snapshot) string {
	GinkgoHelper()
	list := func(resources []*snapshot.Resource, into func() proto.Message) []json.RawMessage {
		texts := []json.RawMessage{}
		for _, r := range resources {
			m := into()
			Expect(r.Body.UnmarshalTo(m)).To(Succeed())
			text, err := protojson.Marshal(m)
			Expect(err).NotTo(HaveOccurred())
			texts = append(texts, text)
		}
		return texts
	}
	routes := list([]*snapshot.Resource{s.Routes(s.Hosts)}, func() proto.Message { return &routev3.RouteConfiguration{} })[0]
	var listeners []any
	for _, l := range list(s.Listeners, func() proto.Message { return &listenerv3.Listener{} }) {
		listeners = append(listeners, inline(l, routes))
	}
	bootstrap, err := json.Marshal(map[string]any{
		"node":  map[string]any{"id": "gw", "cluster": "gw"},
		"admin": map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}},
		"dynamic_resources": json.RawMessage(
			`{"ads_config":{"api_type":"DELTA_GRPC","transport_api_version":"V3","grpc_services":[{"envoy_grpc":{"cluster_name":"gatehouse_xds"}}]}}`),
		"static_resources": map[string]any{
			"listeners": listeners, "secrets": list(s.Secrets, func() proto.Message { return &tlsv3.Secret{} }),
			"clusters": append(list(s.Clusters, func() proto.Message { return &clusterv3.Cluster{} }),
				json.RawMessage(`{"name":"gatehouse_xds","type":"STATIC","load_assignment":{"cluster_name":"gatehouse_xds"}}`)),
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(bootstrap)
}

// inline returns a part of a configuration with its routes in it, and without references
// to a control plane: secrets are found by their names, and no token is verified here.
func inline(text, routes json.RawMessage) any {
	GinkgoHelper()
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case []any:
			v = slices.DeleteFunc(v, func(e any) bool {
				m, _ := e.(map[string]any)
				return m["configDiscovery"] != nil
			})
			for i := range v {
				v[i] = walk(v[i])
			}
			return v
		case map[string]any:
			delete(v, "sdsConfig")
			if v["rds"] != nil {
				delete(v, "rds")
				v["routeConfig"] = inline(routes, nil)
			}
			for key := range v {
				v[key] = walk(v[key])
			}
		}
		return v
	}
	var v any
	Expect(json.Unmarshal(text, &v)).To(Succeed())
	return walk(v)
}

// expanded returns the URL that a user's redirect means for a host, over plain HTTP.
func expanded(redirect, host string) string {
	if strings.HasPrefix(redirect, "/") {
		return "http://" + host + redirect
	}
	if strings.EqualFold(redirect[:min(len(redirect), 4)], "http") {
		scheme, rest, _ := strings.Cut(redirect, "://")
		redirect = strings.ToLower(scheme) + "://" + rest
	}
	redirect = regexp.MustCompile(`(?i)%REQ\(x-forwarded-proto\)%`).ReplaceAllLiteralString(redirect, "http")
	return regexp.MustCompile(`(?i)%REQ\(:authority\)%`).ReplaceAllLiteralString(redirect, host)
}

var _ = Describe("Redirects that are made up", func() {
	It("never crash Envoy if they are accepted, and lead where they say", func() {
		seed := uint64(GinkgoRandomSeed())  //nolint:gosec // any number will do
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // to be repeated
		var logins []*model.Filter
		var redirects []string
		refused := 0
		for range templates() {
			redirect := template(r)
			f := templated(r, redirect)
			if len(f.Validate()) > 0 {
				refused++
				continue
			}
			logins, redirects = append(logins, f), append(redirects, redirect)
		}
		GinkgoWriter.Printf("seed %d: %d accepted, %d refused\n", seed, len(logins), refused)
		Expect(len(logins)).To(BeNumerically(">", templates()/10), "too few are accepted to prove much")
		Expect(refused).To(BeNumerically(">", templates()/10), "too few are refused to prove much")
		for from := 0; from < len(logins); from += templatesOfOne {
			to := min(from+templatesOfOne, len(logins))
			By(fmt.Sprintf("the %dth to the %dth", from+1, to))
			survives(logins[from:to], redirects[from:to])
		}
	})
})

// survives runs an Envoy with logins and requests from each host a page, the path to
// which the provider redirects users, and the path that signs out.
func survives(logins []*model.Filter, redirects []string) {
	GinkgoHelper()
	port := freePort()
	b, err := pipeline.NewBuild(compile.Settings{
		Authorities: "any", Open: func(_, place string) (string, error) { return "opened " + place, nil },
	})
	Expect(err).NotTo(HaveOccurred())
	result := b.Apply(templatedHosts(port, logins))
	Expect(slices.Concat(slices.Collect(maps.Values(result.Conditions))...)).To(BeEmpty(), "what closes a host is no login")
	s := result.Snapshots["gw"]
	Expect(s).NotTo(BeNil())
	e, err := testkit.RunEnvoy(limit(), GinkgoT().TempDir(), staticBootstrap(s))
	Expect(err).NotTo(HaveOccurred(), "%.2000s", fmt.Sprint(redirects))
	defer func() { Expect(e.Kill()).To(Succeed()) }()
	client := &http.Client{
		Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	for i, redirect := range redirects {
		host := hostOf(i)
		get := func(path string) *http.Response {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil)
			Expect(err).NotTo(HaveOccurred())
			req.Host, req.URL.Opaque = host, path
			res, err := client.Do(req)
			if err != nil {
				Fail(fmt.Sprintf("%q of %s: %s\n%.2000s", redirect, logins[i].Config, err, e.Stderr))
			}
			_, _ = io.Copy(io.Discard, res.Body)
			Expect(res.Body.Close()).To(Succeed())
			return res
		}
		login := model.LoginOf(logins[i].Parse().Spec)
		res := get("/deep")
		Expect(res.StatusCode).To(Equal(http.StatusFound), "%s", logins[i].Config)
		to, err := url.Parse(res.Header.Get("Location"))
		Expect(err).NotTo(HaveOccurred())
		Expect(res.Header.Get("Location")).To(HavePrefix(strings.SplitN(login.AuthorizationEndpoint, "?", 2)[0]), "%s", logins[i].Config)
		Expect(to.Query().Get("redirect_uri")).To(Equal(expanded(redirect, host)), "%s", logins[i].Config)
		Expect(get(login.Redirect.Path).StatusCode).To(Equal(http.StatusUnauthorized), "the way back of %s", logins[i].Config)
		if login.SignOutPath == "" {
			continue
		}
		res = get(login.SignOutPath)
		Expect(res.StatusCode).To(Equal(http.StatusFound), "the sign-out of %s", logins[i].Config)
		if login.EndSessionEndpoint == "" {
			Expect(res.Header.Get("Location")).To(Equal("http://"+host+"/"), "the sign-out of %s", logins[i].Config)
		} else {
			to, err := url.Parse(res.Header.Get("Location"))
			Expect(err).NotTo(HaveOccurred())
			Expect(res.Header.Get("Location")).To(HavePrefix(login.EndSessionEndpoint), "%s", logins[i].Config)
			Expect(to.Query().Get("client_id")).To(Equal("shop"), "%s: %s", logins[i].Config, res.Header.Get("Location"))
			Expect(to.Query().Get("post_logout_redirect_uri")).To(Equal("http://"+host+"/"), "%s: %s", logins[i].Config, res.Header.Get("Location"))
		}
	}
	a, err := e.Admin.Get(limit(), "/ready")
	Expect(err).NotTo(HaveOccurred(), "%.2000s", e.Stderr)
	Expect(strings.TrimSpace(a.Body)).To(Equal("LIVE"))
}
