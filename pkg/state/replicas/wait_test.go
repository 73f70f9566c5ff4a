package replicas_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("An answer to another replica", func() {
	keys := []model.Key{model.ServiceKey("shop")}
	nothing := func(context.Context, int64, []model.Key) []status.Lag { return nil }

	It("lists 100 Envoys with short messages, and the number of the others", func(ctx SpecContext) {
		url := newDatabase()
		a := startReplica(url, "a", options{wait: nothing})
		startReplica(url, "b", options{wait: func(context.Context, int64, []model.Key) (lags []status.Lag) {
			for i := range 103 {
				lags = append(lags, status.Lag{Proxy: "gw", Envoy: fmt.Sprint("10.0.0.1:", 1000+i), Reason: status.Slow, Message: strings.Repeat("x", 501)})
			}
			return lags
		}})
		Eventually(a.Others).Should(HaveLen(1))
		lags := a.Wait(ctx, 7, keys, nil)
		Expect(lags).To(And(HaveLen(101), HaveEach(HaveField("Replica", "b"))))
		Expect(lags[0]).To(Equal(status.Lag{Replica: "b", Reason: status.Slow, Message: "3 more Envoys lag"}))
		Expect(lags[100]).To(And(HaveField("Envoy", "10.0.0.1:1099"), HaveField("Message", strings.Repeat("x", 500)+"...")))
	}, SpecTimeout(time.Minute))

	It("comes half a second before the end of the wait, or is no longer sought when nobody waits", func() {
		url := newDatabase()
		until, ended := make(chan time.Time, 10), make(chan struct{}, 10)
		a := startReplica(url, "a", options{wait: nothing})
		startReplica(url, "b", options{wait: func(ctx context.Context, _ int64, _ []model.Key) []status.Lag {
			end, _ := ctx.Deadline()
			until <- end
			<-ctx.Done()
			ended <- struct{}{}
			return nil
		}})
		Eventually(a.Others).Should(HaveLen(1))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		done := make(chan []status.Lag, 1)
		go func() { done <- a.Wait(ctx, 7, keys, nil) }()
		var end time.Time
		Eventually(until).Should(Receive(&end))
		Expect(end).To(BeTemporally("<", time.Now().Add(19500*time.Millisecond)))
		Expect(ended).NotTo(Receive())
		cancel()
		Eventually(done).Should(Receive(HaveLen(1)))
		a.connect(1, "10.0.0.9:1") // the next report no longer asks
		Eventually(ended).WithTimeout(10 * time.Second).Should(Receive())
	})

	It("is sought twice when an Envoy was between two replicas", func(ctx SpecContext) {
		url := newDatabase()
		var calls atomic.Int64
		var a *replica
		a = startReplica(url, "a", options{wait: func(context.Context, int64, []model.Key) []status.Lag {
			if calls.Add(1) == 1 {
				defer a.connect(1, "10.0.0.2:1")
				return []status.Lag{{Proxy: "gw", Reason: status.NotConnected}}
			}
			return nil
		}})
		Expect(a.Wait(ctx, 7, keys, nil)).To(BeEmpty())
		Expect(calls.Load()).To(Equal(int64(2)))
	}, SpecTimeout(time.Minute))
})
