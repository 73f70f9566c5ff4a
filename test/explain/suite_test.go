package explain_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"html"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

func TestExplain(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	RunSpecs(t, "Explain and Envoy")
}

const proxyName = "gw"

// lab is a real Envoy that receives configurations from this process.
type lab struct {
	server   *server.Server
	registry *status.Registry
	// port is where Envoy listens; backend is the port of all upstreams, which have
	// different addresses.
	port, backend int
	// https is where Envoy listens for HTTPS, as soon as there is a certificate.
	https    int
	revision int64
	// minVersion is the oldest TLS version; empty means the default.
	minVersion string
	// hops is the number of trusted proxies. slashes and underscores are the settings
	// of the proxy for them; empty means the default.
	hops                 int
	slashes, underscores string
}

func newLab(ctx context.Context) *lab {
	GinkgoHelper()
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
	l := &lab{registry: status.NewRegistry()}
	l.server = server.New(server.Options{
		Status: l.registry, Log: slog.New(slog.DiscardHandler), Plan: plan.Options{Grace: time.Millisecond},
	})
	g := l.server.GRPC()
	xds := listen(ctx, "127.0.0.1:0")
	served := make(chan error)
	go func() { served <- g.Serve(xds) }()
	DeferCleanup(func() {
		g.Stop()
		Expect(<-served).To(Succeed())
	})
	var err error
	l.port, err = testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	l.https, err = testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	l.backend = startBackend(ctx)
	e, err := testkit.StartEnvoy(ctx, GinkgoT().TempDir(), proxyName, publishFirst(l, xds.Addr().String()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return l
}

// publishFirst publishes a configuration without services: the Envoy is not ready
// without one.
func publishFirst(l *lab, addr string) string {
	l.publish(nil)
	return addr
}

// publish makes a snapshot of a configuration and serves it.
func (l *lab) publish(objects []model.Object) *snapshot.Snapshot {
	GinkgoHelper()
	l.revision++
	build, err := pipeline.NewBuild(compile.Settings{Open: func(sealed, _ string) (string, error) { return sealed, nil }})
	Expect(err).NotTo(HaveOccurred())
	proxy := model.NewProxy()
	proxy.Name, proxy.HTTPPort, proxy.ListenIP, proxy.TrustedHops = proxyName, l.port, "127.0.0.1", l.hops
	proxy.EscapedSlashes, proxy.UnderscoreHeaders = cmp.Or(l.slashes, proxy.EscapedSlashes), cmp.Or(l.underscores, proxy.UnderscoreHeaders)
	proxy.HTTPSPort, proxy.TLSMinVersion = l.https, cmp.Or(l.minVersion, proxy.TLSMinVersion)
	change := model.Change{Revision: l.revision, Full: true}
	for i, o := range append([]model.Object{proxy}, objects...) {
		Expect(o.Validate()).To(BeEmpty(), "%s", o.Key().Path())
		*o.Meta().ID = int64(i + 1)
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	snap := build.Apply(change).Snapshots[proxyName]
	l.server.Publish(l.revision, map[string]*snapshot.Snapshot{proxyName: snap})
	return snap
}

// live returns when the Envoy has everything.
func (l *lab) live() {
	GinkgoHelper()
	Eventually(func() int64 {
		for _, e := range l.registry.Envoys() {
			Expect(e.Refused).To(BeEmpty())
			return e.Applied
		}
		return 0
	}).Should(Equal(l.revision))
}

func stateOf(s *snapshot.Snapshot) explain.State {
	return explain.State{
		Listeners: s.Listeners, Clusters: s.Clusters, Secrets: s.Secrets, Certificates: s.Candidates, Routes: s.RouteConfiguration(), Hosts: s.Hosts,
	}
}

func listen(ctx context.Context, addr string) net.Listener {
	GinkgoHelper()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	Expect(err).NotTo(HaveOccurred())
	return l
}

// seeds returns the first n, or as many as GATEHOUSE_TEST_SEEDS says, from
// GATEHOUSE_TEST_FIRST_SEED on.
func seeds(getenv func(string) string, n uint64) (first, last uint64) {
	if v, err := strconv.ParseUint(getenv("GATEHOUSE_TEST_SEEDS"), 10, 64); err == nil {
		n = v
	}
	first, _ = strconv.ParseUint(getenv("GATEHOUSE_TEST_FIRST_SEED"), 10, 64)
	return first, first + n
}

// The headers in which a backend returns what it received: the address that was called,
// and the target in the first line and the Host, in hex.
const (
	sawAddress = "X-Saw-Address"
	sawTarget  = "X-Saw-Target"
	sawHost    = "X-Saw-Host"
)

// result is an answer.
type result struct {
	status                  int
	grpc                    string
	location, body          string
	hsts                    string
	forwarded               bool
	address, target, sawFor string
}

// titleOf returns the text of a refusal, which explain tells, from each of its forms. Other bodies stay as they are.
func titleOf(r *http.Response, body string) string {
	if body == "" { // of HEAD
		return ""
	}
	switch r.Header.Get("Content-Type") {
	case "application/problem+json":
		var problem struct{ Title string }
		if err := json.Unmarshal([]byte(body), &problem); err != nil {
			return err.Error()
		}
		return problem.Title
	case "text/html; charset=utf-8":
		if title := refusalPage.FindStringSubmatch(body); title != nil {
			return html.UnescapeString(title[1])
		}
	}
	return strings.TrimSpace(body)
}

var refusalPage = regexp.MustCompile(`<h1>Error \d+</h1>\n<p>(.*)</p>\n<p>Request ID: <code>`)

func resultOf(r *http.Response, body string) result {
	decode := func(name string) string {
		b, err := hex.DecodeString(r.Header.Get(name))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return result{
		status: r.StatusCode, grpc: r.Header.Get("Grpc-Status"), location: r.Header.Get("Location"), body: titleOf(r, body),
		hsts:      r.Header.Get("Strict-Transport-Security"),
		forwarded: r.Header.Get(sawAddress) != "", address: r.Header.Get(sawAddress),
		target: decode(sawTarget), sawFor: decode(sawHost),
	}
}
