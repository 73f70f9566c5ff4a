package server_test

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// heard is what an Envoy received.
type heard struct {
	mu      sync.Mutex
	types   []string
	removed []string
}

func (h *heard) note(r *testkit.XDSResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.types = append(h.types, r.GetTypeUrl())
	h.removed = append(h.removed, r.GetRemovedResources()...)
	_ = r.Ack()
}

func (h *heard) all() (types, removed []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.types, h.removed
}

var _ = Describe("a database without a configuration", func() {
	var (
		log  *gbytes.Buffer
		s    *server.Server
		addr string
	)
	open := func(o server.Options) {
		GinkgoHelper()
		log = gbytes.NewBuffer()
		o.Status, o.Log = status.NewRegistry(), slog.New(slog.NewTextHandler(log, nil))
		s = server.New(o)
		addr = serveGRPC(s.GRPC())
	}
	// envoy connects and requests a type. has are the versions that it reports.
	envoy := func(node, typeURL string, has map[string]string) (*testkit.XDSClient, *heard) {
		GinkgoHelper()
		h := &heard{}
		x, err := testkit.DialXDS(addr, node, h.note)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(x.Close)
		Expect(x.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, InitialResourceVersions: has})).To(Succeed())
		return x, h
	}
	quiet := func(h *heard) {
		GinkgoHelper()
		Consistently(func() []string { types, _ := h.all(); return types }).WithTimeout(200 * time.Millisecond).Should(BeEmpty())
	}
	told := func(h *heard) func() []string {
		return func() []string { types, _ := h.all(); return types }
	}

	It("answers nobody once an Envoy has connected with a configuration, and then everybody", func() {
		open(server.Options{})
		s.Publish(0, nil)
		_, before := envoy("new", snapshot.ListenerType, nil)
		x, live := envoy("gw", snapshot.ClusterType, nil)
		Expect(s.Held()).To(BeEmpty())
		Expect(x.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, InitialResourceVersions: map[string]string{"http": "1"}})).To(Succeed())
		Eventually(s.Held).Should(Equal("the database has no configuration and never had one, but an Envoy of gw has one that it got before; " +
			"restore the database, or apply the configuration; if it is meant to be empty, start with --allow-empty"))
		_, second := envoy("gw", snapshot.ClusterType, map[string]string{"blue": "1"})
		_, fresh := envoy("other", snapshot.ClusterType, nil)
		e := dialEngine(addr, "")
		Expect(s.PublishRateLimits(0, nil)).To(Succeed())
		quiet(second)
		quiet(fresh)
		e.quiet()
		_, removed := live.all()
		Expect(removed).To(BeEmpty())
		_, removed = before.all()
		Expect(removed).To(BeEmpty())

		Expect(s.PublishRateLimits(1, []*rlsconf.RateLimitConfig{{Name: "a", Domain: "a"}})).To(Succeed())
		e.quiet()
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": withCluster(1, "blue")})
		Expect(s.Held()).To(BeEmpty())
		Eventually(told(second)).Should(ContainElement(snapshot.ClusterType))
		Eventually(told(fresh)).Should(ContainElement(snapshot.ClusterType), "though its proxy did not change")
		Expect(e.next().GetResources()).To(HaveLen(1))
		Expect(strings.Count(string(log.Contents()), "no envoy is answered, because the database seems to be lost")).To(Equal(1))
		Expect(log).To(gbytes.Say("envoys are answered again"))
	})

	It("is noticed when it replaces another one under a running program", func() {
		open(server.Options{})
		s.Publish(3, map[string]*snapshot.Snapshot{"gw": withCluster(3, "blue")})
		_, live := envoy("gw", snapshot.ClusterType, map[string]string{"blue": "old"})
		Eventually(told(live)).Should(ContainElement(snapshot.ClusterType))
		s.Replace(0, map[string]*snapshot.Snapshot{"gw": nil})
		Expect(s.Held()).NotTo(BeEmpty())
		_, again := envoy("gw", snapshot.ClusterType, map[string]string{"blue": "1"})
		quiet(again)
	})

	It("is used when the program is told that it is intended, and after writes that leave nothing", func() {
		open(server.Options{AllowEmpty: true})
		s.Publish(0, nil)
		_, live := envoy("gw", snapshot.ListenerType, map[string]string{"http": "1"})
		Eventually(func() []string { _, removed := live.all(); return removed }).Should(Equal([]string{"http"}))

		open(server.Options{})
		s.Publish(9, nil)
		_, live = envoy("gw", snapshot.ListenerType, map[string]string{"http": "1"})
		Eventually(func() []string { _, removed := live.all(); return removed }).Should(Equal([]string{"http"}))
		Expect(s.Held()).To(BeEmpty())
	})

	It("is held from the start if there is evidence against it", func() {
		open(server.Options{Held: "the key is old"})
		Expect(s.Held()).To(HavePrefix("the key is old; restore the database"))
		s.Publish(0, nil)
		_, fresh := envoy("gw", snapshot.ListenerType, nil)
		quiet(fresh)
		Expect(log).To(gbytes.Say(`reason="the key is old; restore`))
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": withCluster(1, "blue")})
		Expect(s.Held()).To(BeEmpty())
	})
})
