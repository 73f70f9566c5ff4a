package replicas_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("Envoys that say who they are", func() {
	var (
		url  string
		a, b *replica
	)
	BeforeEach(func() {
		url = newDatabase()
		a = startReplica(url, "a", options{wait: func(context.Context, int64, []model.Key) []status.Lag { return nil }})
		b = startReplica(url, "b", options{})
	})
	// killed ends b with some Envoys, which a knows.
	killed := func(envoys int) {
		GinkgoHelper()
		Eventually(a.envoys).Should(HaveLen(envoys))
		b.stop()
	}
	wait := func(within time.Duration) []status.Lag {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		return a.Wait(ctx, 7, []model.Key{model.ServiceKey("shop")}, []string{"gw"})
	}
	silent := func(message string) types.GomegaMatcher {
		return ConsistOf(And(HaveField("Replica", "b"), HaveField("Message", MatchRegexp(message))))
	}

	It("are heard at another replica: a wait does not wait for the one that was killed", func() {
		b.connectInstance(1, "one", "10.0.0.2:1")
		b.connectInstance(2, "two", "10.0.0.2:2")
		killed(2)
		a.connectInstance(1, "two", "10.9.9.9:1")
		a.connectInstance(2, "one", "10.9.9.9:2")
		began := time.Now()
		Expect(wait(10 * time.Second)).To(BeEmpty())
		Expect(time.Since(began)).To(And(BeNumerically(">", 1500*time.Millisecond), BeNumerically("<", 5*time.Second)),
			"a living replica would have reported that they left")
		Expect(a.Others()).To(ConsistOf(And(HaveField("Replica", "b"), HaveField("Unheard", true), HaveField("Gone", true), HaveField("Envoys", BeEmpty()))))
		Consistently(a.Others, "5500ms").Should(HaveLen(1), "longer than two reads are apart")
		Expect(query(url, "SELECT count(*) FROM replica_report WHERE ended")).To(BeZero(), "it is not buried before its time")
	})

	It("wait for all of them", func() {
		b.connectInstance(1, "one", "10.0.0.2:1")
		b.connectInstance(2, "two", "10.0.0.3:1")
		killed(2)
		a.connectInstance(1, "two", "10.0.0.3:7")
		Expect(wait(4 * time.Second)).To(silent("^replica b has not reported yet what its Envoys have$"))
	})

	It("are never taken for one that does not say it, nor for another one from their address", func() {
		b.connect(1, "10.0.0.2:1")
		b.connectInstance(2, "two", "10.0.0.3:1")
		killed(2)
		a.connectInstance(1, "three", "10.0.0.2:7")
		a.connectInstance(2, "two", "10.0.0.3:7")
		a.connect(3, "10.0.0.2:8")
		Expect(wait(4 * time.Second)).To(silent("^replica b has not reported yet"))
	})

	It("were not there before: another one with the same name is no sign that a replica is dead", func() {
		a.connectInstance(1, "one", "10.0.0.2:7")
		b.connectInstance(1, "one", "10.0.0.2:1")
		killed(1)
		Expect(wait(4 * time.Second)).To(silent("^replica b has not reported yet"))
	})

	It("prove nothing about a replica that still gives signs of life", func() {
		b.connectInstance(1, "one", "10.0.0.2:1")
		Eventually(a.envoys).Should(HaveLen(1))
		a.connectInstance(1, "one", "10.0.0.2:7")
		sqlOn(url, "UPDATE replica_report SET heard = clock_timestamp() + interval '5 s' WHERE replica = 'b'")
		Consistently(a.Others, "6s").Should(ConsistOf(HaveField("Gone", false)))
	})

	It("are matched by name before they are guessed by address", func() {
		b.connectInstance(1, "one", "10.0.0.2:1")
		b.connectInstance(2, "two", "10.0.0.2:2")
		killed(2)
		sqlOn(url, makeOld, "b", 20)
		Eventually(a.envoys).Should(HaveEach(HaveSuffix("unheard")))
		a.connectInstance(1, "two", "10.0.0.2:7")
		left := replicas.WithoutMoved(a.registry.Envoys(), a.Others())
		Expect(left).To(HaveLen(1))
		Expect(left[0].Envoys).To(ConsistOf(HaveField("Instance", "one")))
	})
})
