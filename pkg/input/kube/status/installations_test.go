package status

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("Other installations", func() {
	var (
		i   *Installations
		now time.Time
	)
	BeforeEach(func() {
		now = start
		i = &Installations{self: "a/lease", now: func() time.Time { return now }, known: map[string]*installation{}}
	})
	lease := func(namespace, holder string, renewed time.Time, yields string) coordination.Lease {
		at := metav1.NewMicroTime(renewed)
		return coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lease", Annotations: map[string]string{yieldsTo: yields}},
			Spec:       coordination.LeaseSpec{HolderIdentity: &holder, RenewTime: &at},
		}
	}

	It("are gone when their Lease has not changed for 30 s, by the own clock", func() {
		Expect(i.isGone("b/lease")).To(BeFalse())
		i.read([]coordination.Lease{lease("b", "pod", start.Add(-time.Hour), "")})
		now = start.Add(29 * time.Second)
		Expect(i.isGone("b/lease")).To(BeFalse())
		i.read([]coordination.Lease{lease("b", "pod", start.Add(-time.Hour), "")})
		now = start.Add(30 * time.Second)
		Expect(i.isGone("b/lease")).To(BeTrue())

		By("it is renewed")
		i.read([]coordination.Lease{lease("b", "pod", start, "")})
		Expect(i.isGone("b/lease")).To(BeFalse())

		By("it is released, which is no sign of life")
		now = start.Add(59 * time.Second)
		i.read([]coordination.Lease{lease("b", "", now, "")})
		Expect(i.isGone("b/lease")).To(BeFalse())
		now = start.Add(60 * time.Second)
		i.read([]coordination.Lease{lease("b", "", now, "")})
		Expect(i.isGone("b/lease")).To(BeTrue())
	})

	It("are gone when they have no Lease, and are not while Leases cannot be listed", func() {
		Expect(i.isGone("b/lease")).To(BeFalse())
		now = start.Add(29 * time.Second)
		i.note(errors.New("forbidden"))
		now = start.Add(58 * time.Second)
		i.read(nil)
		Expect(i.isGone("b/lease")).To(BeFalse())
		now = start.Add(59 * time.Second)
		Expect(i.isGone("b/lease")).To(BeTrue())
	})

	It("are named in a message by both sides", func() {
		Expect(i.message()).To(BeEmpty())
		own := i.read([]coordination.Lease{
			lease("a", "self", start, ""), lease("b", "pod", start, "x/lease a/lease"), lease("c", "pod", start, "x/lease"), lease("d", "pod", start, ""),
		})
		Expect(own.Namespace).To(Equal("a"))
		i.yield(map[string]Ref{"d/lease": {"GatewayHost", "shop", "web"}})
		Expect(i.message()).To(Equal("installation b/lease serves objects whose status this one writes; " +
			"installation d/lease writes the status of objects that this one serves, too, such as GatewayHost shop/web; " +
			"give each installation its own names of proxies, or its own namespaces"))

		By("one that is gone, and one that has got a proxy of its own")
		now = start.Add(goneAfter)
		i.yield(nil)
		Expect(i.message()).To(BeEmpty())
	})
})
