package replicas_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("What 1,000 Envoys cost the database", func() {
	It("is limited: two rows a second, of less than 200 kB", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{})
		for id := range int64(1000) {
			a.connectInstance(id, strings.ToLower(rand.Text()[:16]), fmt.Sprintf("10.0.%d.%d:%d", id/250, id%250, 40000+id))
		}
		begin, posts := time.Now(), func() int64 { return query(url, "SELECT version FROM replica_report") }
		before, writes := posts(), int64(0)
		for time.Since(begin) < 3*time.Second {
			for id := range int64(1000) {
				a.registry.RecordAck(id, "type.googleapis.com/envoy.config.cluster.v3.Cluster", status.Answer{Revision: 1, At: time.Now()})
				a.registry.SetProgress(id, status.Progress{Applied: int64(time.Since(begin))})
				writes++
			}
		}
		took := time.Since(begin)
		Expect(posts()-before).To(BeNumerically("<=", 2*took.Seconds()+2), "%d changes", writes)
		Expect(posts() - before).To(BeNumerically(">=", 1))
		size := query(url, "SELECT octet_length(report) FROM replica_report")
		_, _ = fmt.Fprintf(GinkgoWriter, "%d changes in %s: %d posts, the last of %d bytes\n", writes, took, posts()-before, size)
		Expect(size).To(BeNumerically("<", 200_000))

		By("only heartbeats if nothing changes")
		var still int64
		Eventually(func() bool { last := still; still = posts(); return last == still }).WithPolling(time.Second).Should(BeTrue())
		Consistently(posts, "6s", "1s").Should(Equal(still))
	})
})
