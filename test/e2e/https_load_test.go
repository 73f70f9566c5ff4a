package e2e_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// handshakes is how many random names a flood uses: GATEHOUSE_TEST_HANDSHAKES, or a
// number that suits a run with the other tests.
func handshakes() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_HANDSHAKES")); err == nil {
		return n
	}
	return 1500
}

// without accepts any certificate.
func without(c *tls.Config) { c.InsecureSkipVerify = true }

// flood makes handshakes, each for another name, and counts those that succeed and
// the errors of the others.
func (s secured) flood(total int, name func(int) string) (good int, errs map[string]int) {
	errs = map[string]int{}
	var mu sync.Mutex
	var next atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := next.Add(1); i <= int64(total); i = next.Add(1) {
				conn, err := s.shake(name(int(i)))
				mu.Lock()
				if err == nil {
					good++
				} else {
					errs[err.Error()]++
				}
				mu.Unlock()
				if err == nil {
					_ = conn.Close()
				}
			}
		})
	}
	group.Wait()
	return good, errs
}

// shake makes one of very many handshakes.
func (s secured) shake(name string) (net.Conn, error) {
	config := &tls.Config{ServerName: name, InsecureSkipVerify: true} //nolint:gosec // of a test's own server
	return testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", s.addr(), config))
}

// usual is the median time of a handshake and a request for a host, while a condition
// is true, at least once.
func (s secured) usual(host string, while func() bool) time.Duration {
	GinkgoHelper()
	var took []time.Duration
	for first := true; first || while(); first = false {
		began := time.Now()
		status, body, _ := s.ask(host, host)
		took = append(took, time.Since(began))
		Expect(status).To(Equal(200), body)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// secretsOf counts the secrets that an Envoy has, or waits for.
func secretsOf(admin testkit.API) int {
	GinkgoHelper()
	n := 0
	for _, resource := range []string{"dynamic_active_secrets", "dynamic_warming_secrets"} {
		var dump struct{ Configs []json.RawMessage }
		Expect(json.Unmarshal([]byte(read(admin, "/config_dump?resource="+resource)), &dump)).To(Succeed())
		n += len(dump.Configs)
	}
	return n
}

// allocated returns the memory that an Envoy uses, in bytes.
func allocated(admin testkit.API) int {
	GinkgoHelper()
	var memory struct {
		Allocated int `json:",string"`
	}
	Expect(json.Unmarshal([]byte(read(admin, "/memory")), &memory)).To(Succeed())
	return memory.Allocated
}

var _ = Describe("HTTPS under handshakes with names that clients make up", func() {
	It("stores nothing for names without a certificate, and serves a known host as before", func() {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		admin := adminOf(s.Gatehouse)
		count := 20
		before := s.usual("shop.test", func() bool { count--; return count > 0 })
		s.flood(200, func(i int) string { return fmt.Sprintf("first%d.example", i) }) // one-time allocations
		secrets, memory := secretsOf(admin), allocated(admin)

		total := handshakes()
		var running atomic.Bool
		running.Store(true)
		var good int
		var errs map[string]int
		done := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(done)
			defer running.Store(false)
			good, errs = s.flood(total, func(i int) string { return fmt.Sprintf("r%d.example", i) })
		}()
		meanwhile := s.usual("shop.test", running.Load)
		<-done
		took := time.Since(began)
		AddReportEntry("flood", fmt.Sprintf("%d handshakes in %s; a known host in %s before and %s meanwhile; memory %d before, %d after; secrets %d, %d; %v",
			total, took, before, meanwhile, memory, allocated(admin), secrets, secretsOf(admin), errs))
		Expect(good).To(BeZero())
		Expect(errs).To(Equal(map[string]int{"remote error: tls: handshake failure": total}))
		Expect(meanwhile).To(BeNumerically("<", 50*before))
		Eventually(secretsOf).WithArguments(admin).Should(Equal(secrets))
		Eventually(allocated).WithArguments(admin).Should(BeNumerically("<", memory+1<<20))
	})

	It("stores no more than a thousand names under a wildcard", func() {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		s.serve("wide", "*.wide.test", "*.wide.test")
		admin := adminOf(s.Gatehouse)
		most := 0
		var running atomic.Bool
		running.Store(true)
		var good int
		var errs map[string]int
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer running.Store(false)
			good, errs = s.flood(handshakes(), func(i int) string { return fmt.Sprintf("r%d.wide.test", i) })
		}()
		tick := time.NewTicker(100 * time.Millisecond) // each look keeps Envoy's main thread busy
		defer tick.Stop()
		for running.Load() {
			most = max(most, secretsOf(admin))
			<-tick.C
		}
		<-done
		AddReportEntry("flood", fmt.Sprintf("%d handshakes, %d secrets at most, %d at the end, memory %d", good, most, secretsOf(admin), allocated(admin)))
		Expect(errs).To(BeEmpty())
		Expect(good).To(Equal(handshakes()))
		Expect(most).To(BeNumerically("<=", 1000+50))
	})
})
