package status

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var (
	hosts  = schema.GroupResource{Group: "gateway.gatehouse.dev", Resource: "gatewayhosts"}
	leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// With two objects: the answer to the first patch, then what is written when.
var _ = DescribeTable("The answer to a patch", func(answer error, others time.Duration, again time.Duration, fault string) {
	faults := &faults{}
	w := &Writer{opts: Options{Fault: faults.set, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return start }}}
	q := newQueue("")
	q.take([]Object{host("first", 1)}, start)
	j, _ := q.next(start)
	w.settle(q, result{job: *j, err: answer})
	q.take([]Object{host("other", 1), host("first", 1)}, start)
	written := map[string]time.Duration{}
	for at := time.Duration(0); at <= 2*time.Minute; at += time.Second {
		for _, name := range drain(q, start.Add(at)) {
			written[name] = at
		}
	}
	Expect(written).To(Equal(map[string]time.Duration{"first": again, "other": others}))
	if fault == "" {
		Expect(faults.texts()).To(BeEmpty())
	} else {
		Expect(faults.texts()).To(ConsistOf(HavePrefix(fault)))
	}
},
	Entry("the API server is away", errors.New("connection refused"), time.Second, time.Second, ""),
	Entry("the API server is overloaded", apierrors.NewTooManyRequests("later", 1), time.Second, time.Second, ""),
	Entry("the object is gone", apierrors.NewNotFound(hosts, "first"), time.Duration(0), time.Duration(0), ""),
	Entry("another object has its name, or it has changed since it was claimed",
		apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false), time.Duration(0), time.Duration(0), ""),
	Entry("its status is refused", apierrors.NewBadRequest("no"), time.Duration(0), time.Minute, ""),
	Entry("its status is invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "GatewayHost"}, "first", nil), time.Duration(0), time.Minute, ""),
	Entry("its kind is forbidden", apierrors.NewForbidden(hosts, "first", errors.New("no")), 15*time.Second, 15*time.Second,
		"GatewayHost: conditions are not written: this program may not patch gatewayhosts/status of group gateway.gatehouse.dev: "),
)

var _ = Describe("The Lease", func() {
	It("reports a fault while it cannot be used, and none if another replica is faster", func(ctx context.Context) {
		faults := &faults{}
		l := &faultyLock{
			Interface: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lease"}},
			fault:     func(text string) { faults.set("Lease", text) },
		}
		for _, err := range []error{
			apierrors.NewNotFound(leases, "lease"), apierrors.NewConflict(leases, "lease", nil), apierrors.NewAlreadyExists(leases, "lease"),
		} {
			Expect(l.note(ctx, err)).To(MatchError(err))
			Expect(faults.texts()).To(BeEmpty(), err.Error())
		}
		_ = l.note(ctx, errors.New("connection refused"))
		Expect(faults.texts()).To(Equal([]string{"Lease: conditions are not written: the Lease shop/lease cannot be used: connection refused"}))
		Expect(l.note(ctx, nil)).To(Succeed())
		Expect(faults.texts()).To(BeEmpty())
		ended, end := context.WithCancel(ctx)
		end()
		_ = l.note(ended, context.Canceled)
		Expect(faults.texts()).To(BeEmpty())
	})
})
