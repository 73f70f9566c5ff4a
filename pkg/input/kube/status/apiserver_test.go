package status

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A writer at a real API server", Ordered, func() {
	var k *testkit.Kubernetes

	BeforeAll(func(ctx context.Context) {
		var err error
		k, err = testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return k.End() })
		Expect(k.Kubectl(ctx, "apply", "--server-side", "-f", "../../../../charts/gatehouse/crds")).NotTo(BeEmpty())
		Expect(k.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")).NotTo(BeEmpty())
		Expect(k.Namespace(ctx, "shop")).To(Succeed())
	}, NodeTimeout(3*time.Minute))

	config := func(kubeconfig string) *rest.Config {
		GinkgoHelper()
		c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	create := func(ctx context.Context, kind string, names ...string) {
		GinkgoHelper()
		var text strings.Builder
		for _, name := range names {
			spec := fmt.Sprintf(`{virtualhost: {fqdn: %s.example.com}, routes: [{conditions: [{prefix: /}], services: [{name: web, port: 80}]}]}`, name)
			if kind == "RouteFilter" {
				spec = `{type: route_filter_headers, routeFilterConfig: {config: "{}"}}`
			}
			fmt.Fprintf(&text, "---\napiVersion: gateway.gatehouse.dev/v1\nkind: %s\nmetadata: {name: %s, namespace: shop}\nspec: %s\n", kind, name, spec)
		}
		_, err := k.Apply(ctx, text.String(), "--server-side")
		Expect(err).NotTo(HaveOccurred())
	}
	// list reads all objects of a kind, as a cache would return them.
	list := func(ctx context.Context, kind string) (objects []Object) {
		GinkgoHelper()
		text, err := k.Kubectl(ctx, "get", kind, "--namespace", "shop", "--output", "json")
		Expect(err).NotTo(HaveOccurred())
		var read struct {
			Items []struct {
				Metadata struct {
					Name, UID, ResourceVersion string
					Generation                 int64
				}
				Status gatewayv1.Status
			}
		}
		Expect(json.Unmarshal([]byte(text), &read)).To(Succeed())
		for _, i := range read.Items {
			objects = append(objects, Object{
				Ref: Ref{kind, "shop", i.Metadata.Name}, UID: types.UID(i.Metadata.UID), ResourceVersion: ParseVersion(i.Metadata.ResourceVersion), Status: i.Status,
				Facts: conditions.Facts{
					Generation: i.Metadata.Generation, Proxies: []string{"gatehouse"}, Replicas: []conditions.Replica{{Name: "a", Built: true, Envoys: 1}},
				},
			})
		}
		return objects
	}
	versions := func(ctx context.Context) string {
		GinkgoHelper()
		text, err := k.Kubectl(ctx, "get", "gatewayhosts", "--namespace", "shop", "--output", `jsonpath={range .items[*]}{.metadata.name}={.metadata.resourceVersion} {end}`)
		Expect(err).NotTo(HaveOccurred())
		return text
	}
	ready := func(ctx context.Context, kind, name string) func() string {
		return func() string {
			text, err := k.Kubectl(ctx, "get", kind, name, "--namespace", "shop", "--no-headers")
			Expect(err).NotTo(HaveOccurred())
			return text
		}
	}

	It("writes what kubectl shows, once, and the next leader writes nothing", func(ctx context.Context) {
		names := []string{}
		for n := range 50 {
			names = append(names, fmt.Sprintf("h%02d", n))
		}
		create(ctx, "GatewayHost", names...)
		faults := &faults{}
		run := func(identity string) (context.CancelFunc, chan struct{}) {
			running, stop := context.WithCancel(ctx)
			leading, ended := newClosable(), newClosable()
			w, err := New(Options{
				Config: config(k.Kubeconfig), Changed: nil, Fault: faults.set, Log: slog.New(slog.DiscardHandler),
				Look: func(ctx context.Context) ([]Object, bool) { return list(ctx, "GatewayHost"), true },
			})
			Expect(err).NotTo(HaveOccurred())
			e := Election{
				Config: config(k.Kubeconfig), Namespace: "shop", Name: "gatehouse-status", Identity: identity, Log: slog.New(slog.DiscardHandler),
				Fault: func(text string) { faults.set("Lease", text) },
			}
			go func() {
				defer GinkgoRecover()
				defer ended.close()
				Expect(e.Lead(running, func(ctx context.Context) { leading.close(); w.Run(ctx) })).To(Succeed())
			}()
			Eventually(leading.c).WithTimeout(20 * time.Second).Should(BeClosed())
			DeferCleanup(func() { stop(); Eventually(ended.c).WithTimeout(20 * time.Second).Should(BeClosed()) })
			return stop, ended.c
		}
		stop, ended := run("a")
		Eventually(func(g Gomega) {
			text, err := k.Kubectl(ctx, "get", "gatewayhosts", "--namespace", "shop", "--no-headers")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Count(text, "True")).To(Equal(50))
		}).WithTimeout(30 * time.Second).Should(Succeed())
		Expect(ready(ctx, "gatewayhost", "h07")()).To(MatchRegexp(`^h07 +h07.example.com +gatehouse +True +Programmed +\S+\n$`))
		before := versions(ctx)

		stop()
		Eventually(ended).WithTimeout(20 * time.Second).Should(BeClosed())
		run("b")
		create(ctx, "GatewayHost", "last")
		Consistently(func() string { return versions(ctx) }).WithTimeout(time.Second).Should(HavePrefix(before))
		Expect(faults.texts()).To(BeEmpty())
	}, NodeTimeout(2*time.Minute))

	It("claims an object as it was read, and says whether the API server keeps who wrote it", func(ctx context.Context) {
		create(ctx, "GatewayHost", "claimed")
		w, err := New(Options{Config: config(k.Kubeconfig), Controller: "ns/self", Fault: (&faults{}).set, Log: slog.New(slog.DiscardHandler)})
		Expect(err).NotTo(HaveOccurred())
		claim := func(controller string, older int64) result {
			GinkgoHelper()
			all := list(ctx, "GatewayHost")
			o := all[slices.IndexFunc(all, func(o Object) bool { return o.Name == "claimed" })]
			return w.write(ctx, job{ref: o.Ref, uid: o.UID, status: gatewayv1.Status{Controller: controller}, claims: o.ResourceVersion - older})
		}
		r := claim("ns/self", 0)
		Expect(r.err).NotTo(HaveOccurred())
		Expect(r.unnamed).To(BeFalse())
		Expect(isTestFailed(claim("ns/other", 1).err)).To(BeTrue())
		Expect(isTestFailed(claim(strings.Repeat("x", 318), 0).err)).To(BeFalse(), "it is invalid")
		all := list(ctx, "GatewayHost")
		replaced := w.write(ctx, job{ref: Ref{"GatewayHost", "shop", "claimed"}, uid: "former", status: all[0].Status})
		Expect(isTestFailed(replaced.err)).To(BeTrue())
		controller := func() (string, error) {
			return k.Kubectl(ctx, "get", "gatewayhost", "claimed", "--namespace", "shop", "--output", "jsonpath={.status.controller}")
		}
		Expect(controller()).To(Equal("ns/self"))

		By("an older CRD")
		var patch []string
		for version := range 2 {
			patch = append(patch, fmt.Sprintf(`{"op": "remove", "path": "/spec/versions/%d/schema/openAPIV3Schema/properties/status/properties/controller"}`, version))
		}
		Expect(k.Kubectl(ctx, "patch", "crd", "gatewayhosts.gateway.gatehouse.dev", "--type=json", "--patch", "["+strings.Join(patch, ",")+"]")).NotTo(BeEmpty())
		Eventually(func() bool { r = claim("ns/self", 0); return r.unnamed }).WithTimeout(30 * time.Second).Should(BeTrue())
		q := newQueue("ns/self")
		w.settle(q, r)
		Expect(q.unnamed).To(Equal(map[string]bool{"GatewayHost": true}))
	}, NodeTimeout(time.Minute))

	It("reports what it may not do, and does the rest", func(ctx context.Context) {
		create(ctx, "GatewayHost", "allowed")
		create(ctx, "RouteFilter", "forbidden")
		user, err := k.User(ctx, "hosts-only", testkit.KubernetesRule{
			Groups: []string{"gateway.gatehouse.dev"}, Resources: []string{"gatewayhosts/status"}, Verbs: []string{"patch"},
		})
		Expect(err).NotTo(HaveOccurred())
		faults := &faults{}
		w, err := New(Options{
			Config: config(user), Fault: faults.set, Log: slog.New(slog.DiscardHandler),
			Look: func(ctx context.Context) ([]Object, bool) {
				return append(list(ctx, "GatewayHost"), list(ctx, "RouteFilter")...), true
			},
		})
		Expect(err).NotTo(HaveOccurred())
		e := Election{Config: config(user), Namespace: "shop", Name: "other", Identity: "a", Fault: func(text string) { faults.set("Lease", text) }}
		running, stop := context.WithCancel(ctx)
		done := newClosable()
		go func() { defer done.close(); w.Run(running) }()
		lead := newClosable()
		go func() { defer lead.close(); _ = e.Lead(running, func(context.Context) {}) }()
		Eventually(ready(ctx, "gatewayhost", "allowed")).WithTimeout(20 * time.Second).Should(ContainSubstring("True"))
		Eventually(faults.texts).WithTimeout(20 * time.Second).Should(ConsistOf(
			HavePrefix(`RouteFilter: conditions are not written: this program may not patch routefilters/status of group gateway.gatehouse.dev: `),
			HavePrefix(`Lease: conditions are not written: the Lease shop/other cannot be used: `),
		))
		stop()
		Eventually(done.c).WithTimeout(10 * time.Second).Should(BeClosed())
		Eventually(lead.c).WithTimeout(10 * time.Second).Should(BeClosed())
	}, NodeTimeout(2*time.Minute))

	It("continues when the API server comes back, and writes nothing to a new object with an old name", func(ctx context.Context) {
		create(ctx, "GatewayHost", "away", "again")
		stale := list(ctx, "GatewayHost")
		var mu sync.Mutex
		changed := channel()
		w, err := New(Options{
			Config: config(k.Kubeconfig), Changed: changed, Fault: (&faults{}).set, Log: slog.New(slog.DiscardHandler),
			Look: func(context.Context) ([]Object, bool) { mu.Lock(); defer mu.Unlock(); return stale, true },
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = k.Kubectl(ctx, "delete", "gatewayhost", "again", "--namespace", "shop")
		Expect(err).NotTo(HaveOccurred())
		create(ctx, "GatewayHost", "again")
		Expect(k.Stop()).To(Succeed())
		running, stop := context.WithCancel(ctx)
		done := newClosable()
		go func() { defer done.close(); w.Run(running) }()
		Expect(k.Start(ctx)).To(Succeed())
		Eventually(ready(ctx, "gatewayhost", "away")).WithTimeout(60 * time.Second).Should(ContainSubstring("True"))
		Expect(ready(ctx, "gatewayhost", "again")()).NotTo(ContainSubstring("True"))
		fresh := list(ctx, "GatewayHost")
		mu.Lock()
		stale = fresh
		mu.Unlock()
		changed <- struct{}{}
		Eventually(ready(ctx, "gatewayhost", "again")).WithTimeout(20 * time.Second).Should(ContainSubstring("True"))
		stop()
		Eventually(done.c).WithTimeout(10 * time.Second).Should(BeClosed())
	}, NodeTimeout(3*time.Minute))
})

// closable is a channel that is closed once, however often close is called.
type closable struct {
	c    chan struct{}
	once sync.Once
}

func newClosable() *closable { return &closable{c: make(chan struct{})} }

func (c *closable) close() { c.once.Do(func() { close(c.c) }) }

func channel() chan struct{} { return make(chan struct{}, 1) }

// faults keeps the faults that a writer reports.
type faults struct {
	mu sync.Mutex
	by map[string]string
}

func (f *faults) set(what, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[string]string{}
	}
	if text == "" {
		delete(f.by, what)
		return
	}
	f.by[what] = text
}

func (f *faults) texts() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for what, text := range f.by {
		list = append(list, what+": "+text)
	}
	return list
}
