package cost_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// world is what all Envoys share.
type world struct {
	backend   int
	authority *testkit.Authority
	pair      testkit.Pair
	dir       string
	// toldWho is the port of the same backend behind the PROXY protocol.
	toldWho int
	// collector is the port of a collector for spans.
	collector int
	// globals are the global configs of the proxies.
	globals list
	// countries is the path of a database for the Envoys; empty means none.
	countries string
	// http3 means that the proxies tell clients about HTTP/3.
	http3 bool
}

// with returns a world whose proxies have a global config.
func (w world) with(kind string, config object) world {
	w.globals = list{object{"globalconfig_name": "g", "globalconfig_type": kind, "config": config}}
	return w
}

// and returns a world whose proxies have one more global config.
func (w world) and(kind string, config object) world {
	w.globals = append(slices.Clone(w.globals), object{"globalconfig_name": "h", "globalconfig_type": kind, "config": config})
	return w
}

// withHTTP3 returns a world whose proxies tell clients about HTTP/3.
func (w world) withHTTP3() world {
	w.http3 = true
	return w
}

// withCountries returns a world whose Envoys know in which country a client is.
func (w world) withCountries() world {
	GinkgoHelper()
	w.countries = filepath.Join(w.dir, "country.mmdb")
	Expect(testkit.WriteCountries(w.countries, map[string]string{"127.0.0.0/8": "DE"})).To(Succeed())
	return w
}

// gateway is an Envoy that is counted, and the REST API that configures it, if there is one.
type gateway struct {
	world
	envoy       *testkit.CountedEnvoy
	http, https int
	api         testkit.API
	// quic is its client of HTTP/3, once it was needed.
	quic *testkit.HTTP3
}

func newWorld() world {
	GinkgoHelper()
	long := strings.Repeat("a line of text, as there are many\n", 121)
	// Its answers always have the same size.
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := "hello"
		if r.URL.Query().Has("large") {
			body = long
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, body)
	}))
	DeferCleanup(backend.Close)
	w := world{globals: list{}, backend: backend.Listener.Addr().(*net.TCPAddr).Port, dir: GinkgoT().TempDir()}
	w.toldWho = behindProxyProtocol(backend.Config.Handler)
	collector, err := testkit.StartCollector()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(collector.Close)
	w.collector = collector.GRPC
	w.authority, err = testkit.NewAuthority("cost")
	Expect(err).NotTo(HaveOccurred())
	w.pair, err = w.authority.Issue(testkit.CertificateOptions{Names: []string{"plain.test"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(w.dir, "cert.pem"), []byte(w.pair.Cert), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(w.dir, "key.pem"), []byte(w.pair.Key), 0o600)).To(Succeed())
	return w
}

// preceded are connections that begin with the PROXY protocol, version 1.
type preceded struct{ net.Listener }

func (p preceded) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	for b := []byte{0}; err == nil && b[0] != '\n'; { // byte by byte, because the rest is the request
		_, err = conn.Read(b)
	}
	return conn, err
}

// behindProxyProtocol serves the handler at a port whose connections begin with the PROXY protocol.
func behindProxyProtocol(h http.Handler) (port int) {
	GinkgoHelper()
	server := httptest.NewUnstartedServer(h)
	server.Listener = preceded{server.Listener}
	server.Start()
	DeferCleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

func (w world) newGateway() *gateway {
	GinkgoHelper()
	g := &gateway{world: w}
	for _, port := range []*int{&g.http, &g.https} {
		var err error
		*port, err = testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
	}
	return g
}

// run starts the Envoy.
func (g *gateway) run(ctx context.Context, bootstrap string) {
	GinkgoHelper()
	var err error
	g.envoy, err = testkit.CountEnvoy(ctx, GinkgoT().TempDir(), bootstrap)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(g.envoy.Kill()).To(Succeed()) })
}

// startByHand starts an Envoy without a control plane.
func (w world) startByHand(ctx context.Context) *gateway {
	GinkgoHelper()
	g := w.newGateway()
	text, err := os.ReadFile("testdata/byhand.yaml")
	Expect(err).NotTo(HaveOccurred())
	g.run(ctx, strings.NewReplacer("HTTP_PORT", strconv.Itoa(g.http), "HTTPS_PORT", strconv.Itoa(g.https),
		"BACKEND_PORT", strconv.Itoa(g.backend), "DIR", g.dir).Replace(string(text)))
	Expect(g.envoy.Count(ctx)).To(Succeed())
	return g
}

// start starts a control plane and its Envoy, with services.
func (w world) start(ctx context.Context, services []part, args ...string) *gateway {
	GinkgoHelper()
	g := w.newGateway()
	control, err := testkit.StartGatehouse(ctx, nil, append([]string{
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--allow-lua",
	}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(control.Stop(ctx)).To(BeZero(), control.Stderr.String()) })
	g.api = control.API
	for _, call := range [][]string{
		{"/secret", "Secret_name=plain", "Secret_cert=" + g.pair.Cert, "Secret_key=" + g.pair.Key},
		{"/proxy", "Name=gw", "Listen_ip=127.0.0.1", fmt.Sprint("Http_port=", g.http), fmt.Sprint("Https_port=", g.https), fmt.Sprint("Http3=", g.http3)},
	} {
		a, err := g.api.Post(ctx, call[0], call[1:]...)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
	}
	bootstrap, err := testkit.PrintBootstrap(ctx, "gw", control.XDSAddr, "--admin-addr", "127.0.0.1:0", "--node-metadata", "has=none")
	Expect(err).NotTo(HaveOccurred())
	if g.countries != "" { // as "gatehouse envoy" says it
		Expect(bootstrap).To(ContainSubstring(`"has": "none"`))
		bootstrap = strings.Replace(bootstrap, `"has": "none"`, `"gatehouse_country_database": "`+g.countries+`"`, 1)
	}
	g.run(ctx, bootstrap)
	g.apply(ctx, services)
	// From now on each instruction takes longer.
	Expect(g.envoy.Count(ctx)).To(Succeed())
	return g
}

// apply makes the services live.
func (g *gateway) apply(ctx context.Context, services []part) {
	GinkgoHelper()
	text, err := json.Marshal(document(g.world, services))
	Expect(err).NotTo(HaveOccurred())
	a, err := g.api.Do(ctx, http.MethodPut, "/config?wait=applied&timeout=60s", "application/json", string(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}

// cost returns the instructions for one request of the part, on one connection that is in use
// already.
func (g *gateway) cost(ctx context.Context, p part) float64 {
	GinkgoHelper()
	const warm, batches = 20, 6
	batch := cmp.Or(p.batch, 25)
	client, req := g.client(p), p.request(ctx)
	defer client.CloseIdleConnections()
	ask := func(n int) {
		for range n {
			if p.http3 {
				g.ask3(req)
				continue
			}
			resp, err := client.RoundTrip(req)
			Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(resp.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			Expect(resp.StatusCode).To(Equal(max(p.status, http.StatusOK)), string(body))
			Expect(resp.ProtoAtLeast(2, 0)).To(Equal(p.http2), resp.Proto)
			encoding := ""
			if p.large {
				encoding = "gzip"
			}
			Expect(resp.Header.Get("Content-Encoding")).To(Equal(encoding))
		}
	}
	ask(max(p.warm, warm))
	costs := make([]int, batches)
	before, err := g.envoy.Instructions(ctx)
	Expect(err).NotTo(HaveOccurred())
	for i := range costs {
		ask(batch)
		after, err := g.envoy.Instructions(ctx)
		Expect(err).NotTo(HaveOccurred())
		// The worker's are the most. The other threads work for the control plane and the log.
		for thread, n := range after {
			costs[i] = max(costs[i], n-before[thread])
		}
		before = after
	}
	// What Envoy does from time to time, such as a new date or the merging of statistics, only
	// adds to a batch, and more on a busy machine: the smaller half has the least of it.
	slices.Sort(costs)
	sum := 0
	for _, n := range costs[:batches/2] {
		sum += n
	}
	return float64(sum) / float64(batches/2*batch)
}

// ask3 sends a request over the connection of HTTP/3.
func (g *gateway) ask3(req *http.Request) {
	GinkgoHelper()
	if g.quic == nil {
		client, err := testkit.NewHTTP3()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(client.Stop)
		Expect(client.Connect("c", g.https, "plain.test", "")).To(Succeed())
		g.quic = client
	}
	var header [][2]string
	for name, values := range req.Header {
		header = append(header, [2]string{strings.ToLower(name), values[0]})
	}
	answer, err := g.quic.Ask("c", req.Method, req.URL.Host, req.URL.RequestURI(), header, "")
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Status).To(Equal(http.StatusOK), answer.Body)
}

// client has one connection.
func (g *gateway) client(p part) *http.Transport {
	port := g.http
	if p.tls {
		port = g.https
	}
	return &http.Transport{
		MaxConnsPerHost: 1, ForceAttemptHTTP2: p.http2,
		TLSClientConfig: &tls.Config{RootCAs: g.authority.Pool(), MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := testkit.Dialer().DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err == nil && p.envoy == balanced {
				_, err = io.WriteString(conn, "PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n")
			}
			return conn, err
		},
	}
}

// request is like that of a browser.
func (p part) request(ctx context.Context) *http.Request {
	GinkgoHelper()
	scheme, query := "http", "c=d"
	if p.tls || p.http3 {
		scheme = "https"
	}
	if p.large {
		query = "large"
	}
	host := strings.Replace(p.domain(), "*", "a", 1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+"/a/b?"+query, nil)
	Expect(err).NotTo(HaveOccurred())
	for _, h := range []line{
		{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}, {"Accept", "*/*"},
		{"Accept-Encoding", "gzip, deflate, br"}, {"Accept-Language", "en"}, p.header,
	} {
		if h[0] != "" {
			req.Header.Set(h[0], h[1])
		}
	}
	return req
}
