package board_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/board"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestBoard(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute) // client-go pauses for up to 30 s before it watches again
	RunSpecs(t, "kube/board")
}

// clock is a clock that a spec moves.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

var _ = Describe("The board of ConfigMaps", Ordered, func() {
	var (
		k       *testkit.Kubernetes
		account string // the kubeconfig of a service account with minimal permissions
	)

	BeforeAll(func(ctx context.Context) {
		var err error
		k, err = testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return k.End() })
		Expect(k.Namespace(ctx, "gate")).To(Succeed())
		account, err = k.ServiceAccount(ctx, "gate", "gatehouse", testkit.KubernetesRule{
			Namespace: "gate", Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		}, testkit.KubernetesRule{
			Namespace: "gate", Groups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
		})
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(2*time.Minute))

	// run starts a board; stop ends what it reads.
	run := func(ctx context.Context, o board.Options) (b *board.Board, stop func()) {
		GinkgoHelper()
		var err error
		o.Config, err = clientcmd.BuildConfigFromFlags("", account)
		Expect(err).NotTo(HaveOccurred())
		o.Namespace = "gate"
		if o.Installation == "" {
			o.Installation = "gatehouse"
		}
		b, err = board.New(o)
		Expect(err).NotTo(HaveOccurred())
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		var group sync.WaitGroup
		group.Go(func() { _ = b.Run(running) })
		stop = func() { cancel(); group.Wait() }
		DeferCleanup(stop)
		return b, stop
	}
	open := func(ctx context.Context, o board.Options) *board.Board {
		GinkgoHelper()
		b, _ := run(ctx, o)
		return b
	}
	names := func(ctx context.Context) string {
		GinkgoHelper()
		text, err := k.Kubectl(ctx, "get", "configmaps", "--namespace", "gate", "--selector", board.Label, "--output", "name")
		Expect(err).NotTo(HaveOccurred())
		return text
	}
	read := func(ctx context.Context, b *board.Board, replica string) func() []replicas.Notice {
		return func() []replicas.Notice {
			list, _, err := b.Read(ctx, replica, nil)
			Expect(err).NotTo(HaveOccurred())
			return list
		}
	}

	It("has the last publication of each replica, for the replicas of its own installation only", func(ctx context.Context) {
		clock, oldClock := &clock{}, &clock{}
		a := open(ctx, board.Options{Replica: "a-1", Now: clock.now})
		b := open(ctx, board.Options{Replica: "b-1", Pod: "gatehouse-0", PodUID: "5a1c6f0e-8f58-4f3a-9a5c-0d5f9a7b1c2d"})
		other := open(ctx, board.Options{Replica: "c-1", Installation: "other"})
		for _, o := range []*board.Board{a, b, other} {
			list, kept, err := o.Read(ctx, "x", nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(BeEmpty())
			Expect(kept).To(BeFalse())
		}
		Expect(other.Publish(ctx, replicas.Post{Replica: "c-1", Report: []byte("other")})).To(Succeed())
		Expect(b.Publish(ctx, replicas.Post{Replica: "b-1", Versions: replicas.Versions{Report: 1, Mail: 1}, Report: []byte("r1"), Mail: []byte("m1")})).To(Succeed())
		Eventually(a.Changed()).Should(Receive())
		Eventually(read(ctx, a, "a-1")).Should(HaveExactElements(HaveField("Post", replicas.Post{
			Replica: "b-1", Versions: replicas.Versions{Report: 1, Mail: 1}, Report: []byte("r1"), Mail: []byte("m1"),
		})))
		Expect(read(ctx, b, "b-1")()).To(BeEmpty())
		Consistently(b.Changed()).WithTimeout(300*time.Millisecond).ShouldNot(Receive(), "by its own post")
		Expect(names(ctx)).To(Equal("configmap/gatehouse-replica-c-1\nconfigmap/gatehouse-replica-gatehouse-0\n"))
		Expect(k.Kubectl(ctx, "get", "configmap", "gatehouse-replica-gatehouse-0", "--namespace", "gate", "--output",
			"jsonpath={.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name} {.metadata.ownerReferences[0].uid}")).
			To(Equal("Pod gatehouse-0 5a1c6f0e-8f58-4f3a-9a5c-0d5f9a7b1c2d"))

		By("known posts are not read again, and are kept if they are not published again")
		Expect(b.Publish(ctx, replicas.Post{Replica: "b-1", Versions: replicas.Versions{Report: 1, Mail: 2}, Mail: []byte("m2")})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveExactElements(HaveField("Post", replicas.Post{
			Replica: "b-1", Versions: replicas.Versions{Report: 1, Mail: 2}, Report: []byte("r1"), Mail: []byte("m2"),
		})))
		known, _, err := a.Read(ctx, "a-1", map[string]replicas.Versions{"b-1": {Report: 1, Mail: 2}})
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(HaveLen(1))
		Expect(known[0].Report).To(BeNil())

		By("a sign of life")
		clock.advance(20 * time.Second)
		Expect(read(ctx, a, "a-1")()[0].Age).To(BeNumerically(">", 15*time.Second))
		Expect(b.Beat(ctx, "b-1")).To(BeTrue())
		Eventually(func() time.Duration { return read(ctx, a, "a-1")()[0].Age }).Should(BeNumerically("<", 5*time.Second))
		Expect(a.Beat(ctx, "a-1")).To(BeFalse(), "of a replica that has not published")

		By("a container that restarts in its Pod")
		again := open(ctx, board.Options{Replica: "b-2", Pod: "gatehouse-0"})
		Expect(again.Publish(ctx, replicas.Post{Replica: "b-2", Versions: replicas.Versions{Report: 1}, Report: []byte("r3")})).To(Succeed())
		ended := func(name string) replicas.Notice {
			return replicas.Notice{Post: replicas.Post{Replica: name}, Ended: true}
		}
		Eventually(read(ctx, a, "a-1")).Should(HaveExactElements(HaveField("Post", replicas.Post{
			Replica: "b-2", Versions: replicas.Versions{Report: 1}, Report: []byte("r3"),
		}), Equal(ended("b-1"))))
		Expect(b.Beat(ctx, "b-1")).To(BeFalse())
		Expect(b.End(ctx, "b-1")).To(Succeed())
		Expect(names(ctx)).To(ContainSubstring("gatehouse-0"), "it is another's now")

		By("a replica that leaves")
		Expect(again.End(ctx, "b-2")).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(ended("b-1"), ended("b-2")))
		Expect(names(ctx)).To(Equal("configmap/gatehouse-replica-c-1\n"))

		By("a replica that left, and comes back")
		Expect(again.Publish(ctx, replicas.Post{Replica: "b-2"})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(HaveField("Post", replicas.Post{Replica: "b-2"}), Equal(ended("b-1"))))
		Expect(again.End(ctx, "b-2")).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(ended("b-1"), ended("b-2")))

		By("a replica that is dead")
		old := open(ctx, board.Options{Replica: "Old_1", Now: oldClock.now})
		Expect(old.Publish(ctx, replicas.Post{Replica: "Old_1", Report: []byte("old")})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveLen(3))
		Expect(names(ctx)).To(ContainSubstring("gatehouse-replica-old-1"))

		By("a replica whose ConfigMap somebody removes is not dead")
		_, err = k.Kubectl(ctx, "delete", "configmap", "gatehouse-replica-old-1", "--namespace", "gate")
		Expect(err).NotTo(HaveOccurred())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(ended("b-1"), ended("b-2")))
		Expect(old.Beat(ctx, "Old_1")).To(BeFalse())
		isKept := func() bool {
			GinkgoHelper()
			_, kept, err := old.Read(ctx, "Old_1", nil)
			Expect(err).NotTo(HaveOccurred())
			return kept
		}
		oldClock.advance(6 * time.Second)
		Eventually(isKept).Should(BeFalse())
		Expect(old.Publish(ctx, replicas.Post{Replica: "Old_1", Report: []byte("old")})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveLen(3))
		Eventually(isKept).Should(BeTrue())

		By("a replica whose ConfigMap somebody takes out of the installation")
		_, err = k.Kubectl(ctx, "label", "configmap", "gatehouse-replica-old-1", "--namespace", "gate", "--overwrite", board.Label+"=nobody")
		Expect(err).NotTo(HaveOccurred())
		Eventually(read(ctx, a, "a-1")).Should(HaveLen(2))
		Expect(old.Beat(ctx, "Old_1")).To(BeFalse())
		Expect(old.Publish(ctx, replicas.Post{Replica: "Old_1"})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveLen(3))

		clock.advance(601 * time.Second)
		Eventually(read(ctx, a, "a-1")).Should(BeEmpty())
		Eventually(func() string { return names(ctx) }).Should(Equal("configmap/gatehouse-replica-c-1\n"))
	}, NodeTimeout(time.Minute))

	It("does not remove a ConfigMap that has changed since it was read", func(ctx context.Context) {
		clock := &clock{}
		a, stop := run(ctx, board.Options{Replica: "a-1", Now: clock.now, Installation: "stale"})
		b := open(ctx, board.Options{Replica: "b-1", Installation: "stale"})
		Expect(b.Publish(ctx, replicas.Post{Replica: "b-1"})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveLen(1))
		stop()
		Expect(b.Beat(ctx, "b-1")).To(BeTrue())
		clock.advance(601 * time.Second)
		Expect(read(ctx, a, "a-1")()).To(BeEmpty())
		Expect(names(ctx)).To(ContainSubstring("gatehouse-replica-b-1"))
		Expect(b.End(ctx, "b-1")).To(Succeed())
		Expect(read(ctx, a, "a-1")()).To(BeEmpty(), "it is gone")
	}, NodeTimeout(time.Minute))

	It("has a name for a Pod with the longest possible name", func(ctx context.Context) {
		b := open(ctx, board.Options{Replica: "b-1", Pod: strings.Repeat("p", 253), Installation: "long"})
		Expect(b.Publish(ctx, replicas.Post{Replica: "b-1"})).To(Succeed())
		Expect(b.Beat(ctx, "b-1")).To(BeTrue())
		Expect(b.End(ctx, "b-1")).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("reports Pods of a Service that publish nothing", func(ctx context.Context) {
		clock := &clock{}
		// endpoints are those of the Service: POD: CONDITIONS.
		endpoints := func(pods ...string) {
			GinkgoHelper()
			var list []string
			for i, p := range pods {
				name, conditions, _ := strings.Cut(p, ": ")
				list = append(list, fmt.Sprintf("{addresses: [10.0.0.%d], targetRef: {kind: Pod, name: %s}, conditions: {%s}}", i+1, name, conditions))
			}
			_, err := k.Apply(ctx, fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: xds-1, namespace: gate, labels: {kubernetes.io/service-name: xds}}
addressType: IPv4
ports: []
endpoints: [%s]
`, strings.Join(list, ", ")), "--server-side", "--force-conflicts")
			Expect(err).NotTo(HaveOccurred())
		}
		missing := func(pod string) replicas.Notice { return replicas.Notice{Post: replicas.Post{Replica: pod}} }
		ended := func(name string) replicas.Notice {
			return replicas.Notice{Post: replicas.Post{Replica: name}, Ended: true}
		}
		post := replicas.Post{Replica: "b-0:1323-x", Versions: replicas.Versions{Report: 1}, Report: []byte("r1")}
		endpoints("a-0: ready: true", "b-0: ready: true", "new: ready: false, serving: false")
		a := open(ctx, board.Options{Replica: "a-0:1323-x", Pod: "a-0", Installation: "expected", Service: "xds", Now: clock.now})
		b := open(ctx, board.Options{Replica: "b-0:1323-x", Pod: "b-0", Installation: "expected"})
		all := read(ctx, a, "a-0:1323-x")
		Eventually(all).Should(ConsistOf(missing("b-0")), "neither this one, nor one that has never served")
		Expect(a.Synced()).To(BeTrue())

		By("until it publishes")
		Expect(b.Publish(ctx, post)).To(Succeed())
		Eventually(all).Should(ConsistOf(HaveField("Post", post), Equal(ended("b-0"))))

		By("again if it has published nothing for a long time")
		clock.advance(61 * time.Second)
		Expect(all()).To(ConsistOf(HaveField("Post", post), Equal(missing("b-0"))))
		Expect(b.Beat(ctx, "b-0:1323-x")).To(BeTrue())
		Eventually(all).Should(ConsistOf(HaveField("Post", post), Equal(ended("b-0"))))

		By("even if it is no longer ready")
		endpoints("b-0: ready: true", "new: ready: true")
		Eventually(all).Should(ContainElement(missing("new")))
		endpoints("b-0: ready: true", "new: ready: false, serving: false")
		Consistently(all).WithTimeout(time.Second).Should(ContainElement(missing("new")))

		By("while it terminates, but not after it has announced its end")
		endpoints("b-0: ready: false, serving: true, terminating: true", "new: ready: false, serving: true, terminating: true")
		Expect(b.End(ctx, "b-0:1323-x")).To(Succeed())
		Eventually(all).Should(ConsistOf(missing("new"), ended("b-0"), ended("b-0:1323-x")))
		endpoints()
		Eventually(all).Should(ConsistOf(ended("new"), ended("b-0"), ended("b-0:1323-x")))
	}, NodeTimeout(time.Minute))

	It("buries a dead replica, which is revived by its next report", func(ctx context.Context) {
		clock := &clock{}
		a := open(ctx, board.Options{Replica: "a-1", Installation: "buried", Now: clock.now})
		b := open(ctx, board.Options{Replica: "b-1", Installation: "buried"})
		post := replicas.Post{Replica: "b-1", Versions: replicas.Versions{Report: 1}, Report: []byte("r1")}
		Expect(b.Publish(ctx, post)).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(HaveField("Post", post)))
		Expect(a.Bury(ctx, "b-1")).To(Succeed())
		Consistently(read(ctx, a, "a-1")).WithTimeout(time.Second).Should(ConsistOf(HaveField("Post", post)), "it was heard a moment ago")
		clock.advance(61 * time.Second)
		Expect(a.Bury(ctx, "b-1")).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(HaveField("Ended", true)))
		Eventually(func() (bool, error) { return b.Beat(ctx, "b-1") }).Should(BeFalse())
		Expect(b.Publish(ctx, post)).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(ConsistOf(HaveField("Post", post)))
	}, NodeTimeout(time.Minute))

	It("hears from no replica while the API server is away, and from all of them afterwards", func(ctx context.Context) {
		clock := &clock{}
		a := open(ctx, board.Options{Replica: "a-1", Now: clock.now, Installation: "away"})
		b := open(ctx, board.Options{Replica: "b-1", Installation: "away"})
		Expect(b.Publish(ctx, replicas.Post{Replica: "b-1", Report: []byte("r1")})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveLen(1))
		Expect(k.Stop()).To(Succeed())
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := b.Beat(short, "b-1")
		Expect(err).To(MatchError(ContainSubstring("renewing ConfigMap gate/gatehouse-replica-b-1, by which the other replicas know that this one lives: ")))
		clock.advance(20 * time.Second)
		Expect(k.Start(ctx)).To(Succeed())
		Consistently(func() time.Duration { return read(ctx, a, "a-1")()[0].Age }).WithTimeout(2*time.Second).
			Should(BeNumerically(">=", 20*time.Second), "a list is no sign of life")
		Expect(b.Beat(ctx, "b-1")).To(BeTrue())
		Eventually(func() time.Duration { return read(ctx, a, "a-1")()[0].Age }).WithTimeout(30 * time.Second).Should(BeNumerically("<", 20*time.Second))
	}, NodeTimeout(2*time.Minute))

	It("accepts the report of 5,000 Envoys", func(ctx context.Context) {
		a, b := open(ctx, board.Options{Replica: "a-1", Installation: "large"}), open(ctx, board.Options{Replica: "b-1", Installation: "large"})
		large := make([]byte, 700<<10) // gzip does not make it smaller
		_, err := rand.Read(large)
		Expect(err).NotTo(HaveOccurred())
		Expect(b.Publish(ctx, replicas.Post{Replica: "b-1", Versions: replicas.Versions{Report: 1}, Report: large})).To(Succeed())
		Eventually(read(ctx, a, "a-1")).Should(HaveExactElements(HaveField("Report", large)))
		text, err := k.Kubectl(ctx, "get", "configmap", "gatehouse-replica-b-1", "--namespace", "gate", "--output", "json")
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Valid([]byte(text))).To(BeTrue())
		Expect(strings.Count(text, "app.kubernetes.io/managed-by")).To(Equal(1))
	}, NodeTimeout(time.Minute))
})
