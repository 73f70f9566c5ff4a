package console_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// pictures writes the pictures of docs/console again.
var pictures = flag.Bool("pictures", false, "write the pictures of docs/console again")

func TestConsole(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Console")
}

const adminToken = "gh_console-token-of-the-tests-0123456789abcdefghi"

func freePort() string {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return strconv.Itoa(port)
}

// flow runs a program of flows.
func flow(ctx context.Context, name string, env map[string]string) {
	GinkgoHelper()
	chromium, err := exec.LookPath("chromium")
	Expect(err).NotTo(HaveOccurred(), "hack/chromium.sh installs it")
	node, err := filepath.Abs("../../bin/console/node")
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, node, "flows/"+name+".mjs")
	cmd.Env = append(os.Environ(), "CHROMIUM="+chromium, "NODE_MODULES="+filepath.Join(filepath.Dir(node), "node_modules"), "HOME="+GinkgoT().TempDir())
	if *pictures {
		dir, err := filepath.Abs("../../docs/console")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		cmd.Env = append(cmd.Env, "PICTURES="+dir)
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	GinkgoWriter.Printf("%s\n", out)
	Expect(err).NotTo(HaveOccurred(), "%s; hack/console.sh --packages installs what it needs", out)
}

// serve runs a control plane. Its flow may stop it and start it again.
type server struct {
	args, env []string
	running   *testkit.Gatehouse
	base      string
}

func serve(ctx context.Context, env ...string) *server {
	GinkgoHelper()
	s := &server{env: env, args: []string{
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:" + freePort(), "--xds-addr", "127.0.0.1:0",
	}}
	s.start(ctx)
	s.base = s.running.API.URL + "/"
	DeferCleanup(func(ctx SpecContext) { s.stop(ctx) }, NodeTimeout(time.Minute))
	return s
}

func (s *server) start(ctx context.Context) {
	GinkgoHelper()
	var err error
	s.running, err = testkit.StartGatehouse(ctx, s.env, s.args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.running.WaitReady(ctx)).To(Succeed())
}

func (s *server) stop(ctx context.Context) {
	GinkgoHelper()
	Expect(s.running.Stop(ctx)).To(BeZero())
}

// standalone runs a gateway with a backend that answers blue. It returns the address of the gateway and the port of the backend.
func standalone(ctx context.Context) (g *testkit.Gatehouse, gatewayURL, backendPort string) {
	GinkgoHelper()
	port := freePort()
	g, err := testkit.StartGatehouse(ctx, nil, "standalone", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0",
		"--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--http-port", port, "--https-port", freePort())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero()) }, NodeTimeout(time.Minute))
	Expect(g.WaitReady(ctx)).To(Succeed())
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "blue") }))
	DeferCleanup(backend.Close)
	_, backendPort, err = net.SplitHostPort(backend.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	return g, "http://127.0.0.1:" + port + "/", backendPort
}

// control starts and stops a server for a flow. Its page is that of another origin.
func control(ctx context.Context, s *server) string {
	GinkgoHelper()
	mux := http.NewServeMux()
	do := func(what func(context.Context)) http.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) {
			defer GinkgoRecover()
			what(ctx)
		}
	}
	mux.HandleFunc("POST /start", do(s.start))
	mux.HandleFunc("POST /stop", do(s.stop))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>Elsewhere</title><body>")
	})
	server := httptest.NewServer(mux)
	DeferCleanup(server.Close)
	return server.URL
}

var _ = Describe("The console", func() {
	It("leads from nothing to a request through Envoy, and to what Envoy refuses", func(ctx SpecContext) {
		g, gatewayURL, backendPort := standalone(ctx)
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		_, takenPort, err := net.SplitHostPort(taken.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		flow(ctx, "first", map[string]string{
			"BASE": g.API.URL + "/", "GATEWAY": gatewayURL, "BACKEND_PORT": backendPort, "TAKEN": takenPort, "FREE": freePort(),
		})
	}, SpecTimeout(3*time.Minute))

	It("shows a viewer no button that it may not press, and ends sessions on the server", func(ctx SpecContext) {
		s := serve(ctx, "GATEHOUSE_API_ADMIN_TOKEN="+adminToken)
		flow(ctx, "viewer", map[string]string{"BASE": s.base, "TOKEN": adminToken})
	}, SpecTimeout(3*time.Minute))

	It("says that the connection is lost, and heals", func(ctx SpecContext) {
		s := serve(ctx)
		flow(ctx, "lost", map[string]string{"BASE": s.base, "CONTROL": control(ctx, s)})
	}, SpecTimeout(3*time.Minute))

	It("edits with the keyboard, with errors at their fields, conflicts and rollbacks", func(ctx SpecContext) {
		flow(ctx, "edit", map[string]string{"BASE": serve(ctx).base})
	}, SpecTimeout(3*time.Minute))

	It("shows the map of many services, also to the keyboard and as a list", func(ctx SpecContext) {
		flow(ctx, "map", map[string]string{"BASE": serve(ctx).base})
	}, SpecTimeout(3*time.Minute))

	It("explains a request under a draft", func(ctx SpecContext) {
		flow(ctx, "draft", map[string]string{"BASE": serve(ctx).base})
	}, SpecTimeout(3*time.Minute))

	It("shows what rate limits count, and whom they stop", func(ctx SpecContext) {
		g, gatewayURL, backendPort := standalone(ctx)
		flow(ctx, "limits", map[string]string{"BASE": g.API.URL + "/", "GATEWAY": gatewayURL, "BACKEND_PORT": backendPort})
	}, SpecTimeout(3*time.Minute))

	It("edits the whole configuration as one text, with a dry run and conflicts", func(ctx SpecContext) {
		flow(ctx, "document", map[string]string{"BASE": serve(ctx).base})
	}, SpecTimeout(3*time.Minute))

	It("does nothing for pages of other origins, and is in no frame", func(ctx SpecContext) {
		s := serve(ctx, "GATEHOUSE_API_ADMIN_TOKEN="+adminToken)
		flow(ctx, "foreign", map[string]string{"BASE": s.base, "TOKEN": adminToken, "CONTROL": control(ctx, s)})
	}, SpecTimeout(3*time.Minute))

	It("has pages without faults of accessibility below a path, and shows texts that attack as texts", func(ctx SpecContext) {
		s := serve(ctx)
		api, err := url.Parse(s.base)
		Expect(err).NotTo(HaveOccurred())
		front := httptest.NewServer(http.StripPrefix("/admin/gateway", &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) }, FlushInterval: -1,
		}))
		DeferCleanup(front.Close)
		flow(ctx, "pages", map[string]string{"BASE": front.URL + "/admin/gateway/", "DIRECT": strings.TrimSuffix(s.base, "")})
	}, SpecTimeout(6*time.Minute))

	It("signs people in with an identity provider, below a path", func(ctx SpecContext) {
		var api *url.URL
		front := httptest.NewServer(http.StripPrefix("/admin/gateway", &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) }, FlushInterval: -1,
		}))
		DeferCleanup(front.Close)
		base := front.URL + "/admin/gateway/"
		s := serve(ctx, append(withProvider(ctx, base+"ui/"), "GATEHOUSE_API_ADMIN_TOKEN="+adminToken)...)
		var err error
		api, err = url.Parse(s.base)
		Expect(err).NotTo(HaveOccurred())
		flow(ctx, "provider", map[string]string{"BASE": base, "DIRECT": s.base, "TOKEN": adminToken})
	}, SpecTimeout(6*time.Minute))
})

// withProvider starts an identity provider, and returns the settings with which its users sign in at a page.
func withProvider(ctx context.Context, page string) []string {
	GinkgoHelper()
	authority, err := testkit.NewAuthority("provider")
	Expect(err).NotTo(HaveOccurred())
	user := func(claims map[string]any) testkit.OIDCUser {
		return testkit.OIDCUser{Password: "secret", Claims: claims}
	}
	dir := GinkgoT().TempDir()
	p, err := testkit.StartOIDCProvider(ctx, dir, authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{{ID: "gatehouse", Secret: "the-secret-of-the-client-0123456789", RedirectURIs: []string{page}}},
		Users: map[string]testkit.OIDCUser{
			"ann": user(map[string]any{"groups": []string{"dev", "platform"}, "preferred_username": "ann.example"}),
			"eve": user(map[string]any{"groups": []string{"shop"}}), "vic": user(map[string]any{"groups": []string{"staff"}}),
			"nora": user(map[string]any{"groups": []string{"dev"}}),
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill)
	ca := filepath.Join(dir, "ca.pem")
	Expect(os.WriteFile(ca, []byte(authority.PEM), 0o600)).To(Succeed())
	return []string{
		"GATEHOUSE_CONSOLE_OIDC_ISSUER=" + p.Issuer, "GATEHOUSE_CONSOLE_OIDC_CLIENT_ID=gatehouse",
		"GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET=the-secret-of-the-client-0123456789", "GATEHOUSE_CONSOLE_OIDC_NAME=Staff",
		"GATEHOUSE_CONSOLE_OIDC_GROUPS=platform=admin,shop=editor:shop-ci,staff=viewer",
		"GATEHOUSE_UPSTREAM_CA_FILE=" + ca, "GATEHOUSE_PROVIDER_ALLOW=localhost",
	}
}
