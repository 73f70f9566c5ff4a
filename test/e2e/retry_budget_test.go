package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// failingTogether answers its first requests with 503 as soon as all of them have arrived. Later
// requests, which are retries, wait until they are released.
type failingTogether struct {
	*httptest.Server
	arrived, retries atomic.Int64
	all, released    chan struct{}
}

func newFailingTogether(requests int64) *failingTogether {
	f := &failingTogether{all: make(chan struct{}), released: make(chan struct{})}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(testkit.BackendHeader, "failing")
		if r.URL.Path == "/live" {
			return
		}
		n := f.arrived.Add(1)
		if n == requests {
			close(f.all)
		}
		if n <= requests {
			f.await(f.all, r)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		f.retries.Add(1)
		f.await(f.released, r)
	}))
	DeferCleanup(func() {
		f.CloseClientConnections() // a spec that failed has not released them
		f.Close()
	})
	return f
}

// await waits until a channel is closed, or the client is gone.
func (f *failingTogether) await(closed chan struct{}, r *http.Request) {
	select {
	case <-closed:
	case <-r.Context().Done():
	}
}

var _ = Describe("A retry budget", func() {
	DescribeTable("limits the concurrent retries of requests that fail together",
		func(percent, least string, low, high int) {
			const requests, host = 40, "shop.example"
			_, gw := standalone()
			failing := newFailingTogether(requests)
			at, err := url.Parse(failing.URL)
			Expect(err).NotTo(HaveOccurred())
			post(gw.api, "/upstream", "Upstream_name=failing", "Upstream_ip="+at.Hostname(), "Upstream_port="+at.Port(),
				"Upstream_retry_budgetpercent="+percent, "Upstream_retry_budgetmincount="+least)
			post(gw.api, "/service", "Service_Name=shop", "fqdn="+host)
			addRoute(gw.api, "shop", "root", "/", `{"retries":{"attempts":1,"on":["5xx"]}}`, "failing")
			addProxy(gw.api, "gw", gw.port, "shop")
			gw.expect(host, "/live", "failing")

			var failed, succeeded atomic.Int64
			var clients sync.WaitGroup
			for range requests {
				clients.Go(func() {
					defer GinkgoRecover()
					r, err := gw.send(http.MethodGet, host, "/")
					Expect(err).NotTo(HaveOccurred())
					if r.Status == http.StatusOK {
						succeeded.Add(1)
					} else {
						failed.Add(1)
					}
				})
			}
			Eventually(func() int64 { return failed.Load() + failing.retries.Load() }).Should(BeEquivalentTo(requests))
			retries := int(failing.retries.Load())
			close(failing.released)
			clients.Wait()
			Expect(retries).To(And(BeNumerically(">=", low), BeNumerically("<=", high)))
			Expect(succeeded.Load()).To(BeEquivalentTo(retries))
			Expect(failing.retries.Load()).To(BeEquivalentTo(retries), "no more came later")
		},
		Entry("none", "0", "3", 40, 40),
		Entry("a number, if the share is less", "1", "5", 5, 5),
		// A quarter of the 40 requests, whose number decreases with each answer.
		Entry("a share", "25", "0", 5, 10),
	)
})
