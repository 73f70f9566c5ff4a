package status

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
)

func TestStatus(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "kube/status")
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// host returns an object that one Envoy has.
func host(name string, generation int64) Object {
	return Object{
		Ref: Ref{"GatewayHost", "shop", name}, UID: "1", ResourceVersion: 10 * generation,
		Facts: conditions.Facts{
			Generation: generation, Proxies: []string{"gatehouse"}, Replicas: []conditions.Replica{{Name: "a", Built: true, Envoys: 1}},
		},
	}
}

// with changes an object.
func with(o Object, change func(*Object)) Object {
	o.Facts.Replicas = append([]conditions.Replica{}, o.Facts.Replicas...)
	change(&o)
	return o
}

// drain does everything that is due, and returns the names in order.
func drain(q *queue, now time.Time) (names []string) {
	for {
		j, _ := q.next(now)
		if j == nil {
			return names
		}
		names = append(names, j.ref.Name)
		q.wrote(*j, q.known[j.ref].version+1, now)
	}
}

var _ = Describe("The queue of statuses", func() {
	It("claims an object in the version that was read, and then names its writer", func() {
		q := newQueue("ns/self")
		of := func(controller string) []Object {
			return []Object{with(host("web", 1), func(o *Object) { o.ResourceVersion, o.Status.Controller = 9, controller })}
		}
		for _, before := range []string{"", "ns/gone"} {
			q.take(of(before), start)
			Expect(q.jobs[host("web", 1).Ref].claims).To(Equal(int64(9)))
			Expect(q.jobs[host("web", 1).Ref].status.Controller).To(Equal("ns/self"))
		}
		q.take(of("ns/self"), start)
		Expect(q.jobs[host("web", 1).Ref].claims).To(BeZero())

		By("a status that names another writer differs")
		written := with(host("web", 1), func(o *Object) { o.ResourceVersion, o.Status = 10, q.jobs[o.Ref].status })
		q.take([]Object{written}, start)
		Expect(q.jobs).To(BeEmpty())
		written.Status.Controller = "ns/gone"
		q.take([]Object{written}, start)
		Expect(q.jobs).To(HaveLen(1))

		By("a CRD without the field")
		q.unnamed["GatewayHost"] = true
		written.Status.Controller = ""
		q.take([]Object{written}, start)
		Expect(q.jobs).To(BeEmpty())
	})

	It("writes an object once, and again if its status changes", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		j, _ := q.next(start)
		Expect(j.status.ObservedGeneration).To(Equal(int64(1)))
		Expect(j.status.Proxy).To(Equal("gatehouse"))
		Expect(*j.status.Envoys).To(Equal(int32(1)))
		Expect(j.status.Conditions).To(HaveLen(3))

		By("nothing while a write is under way")
		q.take([]Object{host("web", 1)}, start)
		other, wait := q.next(after(60))
		Expect(other).To(BeNil())
		Expect(wait).To(BeZero())
		q.wrote(*j, 11, start)

		By("nothing while the cache is older than the write, and nothing when it has caught up")
		q.take([]Object{host("web", 1)}, after(1))
		Expect(drain(q, after(60))).To(BeEmpty())
		q.take([]Object{with(host("web", 1), func(o *Object) { o.ResourceVersion, o.Status = 11, j.status })}, after(2))
		Expect(drain(q, after(60))).To(BeEmpty())

		By("a new generation")
		q.take([]Object{host("web", 2)}, after(3))
		Expect(drain(q, after(3))).To(Equal([]string{"web"}))
	})

	It("overwrites a change by somebody else", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		q.take([]Object{with(host("web", 1), func(o *Object) { o.ResourceVersion = 99 })}, after(1))
		Expect(drain(q, after(1))).To(HaveLen(1))
	})

	It("has the newest change first, and details last", func() {
		q := newQueue("")
		all := []Object{}
		for n := range 3 {
			all = append(all, host(fmt.Sprint("old", n), 1))
		}
		q.take(all[:1], start)
		Expect(drain(q, start)).To(Equal([]string{"old0"}))
		all[0] = with(all[0], func(o *Object) { o.Facts.Replicas[0].Envoys = 2 })
		q.take(all, after(20))
		q.take(append(all, host("new", 1)), after(21))
		names := drain(q, after(21))
		Expect(names).To(HaveExactElements(Equal("new"), HavePrefix("old"), HavePrefix("old"), Equal("old0")))
	})

	It("delays a new generation while Envoys are about to receive it", func() {
		waiting := with(host("web", 2), func(o *Object) { o.Facts.Replicas[0].Built = false })
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		q.take([]Object{waiting}, after(10))
		j, wait := q.next(after(11))
		Expect(j).To(BeNil())
		Expect(wait).To(Equal(time.Second))
		q.take([]Object{host("web", 2)}, after(11))
		Expect(drain(q, after(11))).To(HaveLen(1))

		By("but no longer")
		q.take([]Object{with(waiting, func(o *Object) { o.Facts.Generation = 3 })}, after(20))
		Expect(drain(q, after(21.9))).To(BeEmpty())
		Expect(drain(q, after(22))).To(HaveLen(1))
	})

	It("delays a refusal of the previous generation", func() {
		refused := with(host("web", 2), func(o *Object) {
			o.Facts.Replicas[0].Lacks = []conditions.Lack{{Envoy: "x", Refused: true, Message: "no"}}
		})
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		q.take([]Object{refused}, after(10))
		Expect(drain(q, after(11.9))).To(BeEmpty())
		Expect(drain(q, after(12))).To(HaveLen(1))
	})

	It("writes nothing about a generation that this replica has not built", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		q.take([]Object{with(host("web", 2), func(o *Object) { o.Pending = true })}, start)
		Expect(drain(q, after(60))).To(BeEmpty())
		q.take([]Object{host("web", 2)}, after(61))
		Expect(drain(q, after(61))).To(Equal([]string{"web"}))
	})

	It("drops a write that is no longer needed", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		q.take([]Object{with(host("web", 1), func(o *Object) { o.Facts.Replicas[0].Envoys = 2 })}, after(1))
		q.take([]Object{host("web", 1)}, after(2))
		Expect(drain(q, after(60))).To(BeEmpty())
	})

	It("puts an object that a user changes again before earlier changes", func() {
		q := newQueue("")
		q.away(job{}, start)
		q.take([]Object{host("web", 1)}, start)
		q.take([]Object{host("web", 1), host("api", 1)}, after(0.1))
		q.take([]Object{host("web", 2), host("api", 1)}, after(0.2))
		Expect(drain(q, after(1))).To(Equal([]string{"web", "api"}))
	})

	It("writes a change of proxy immediately", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		q.take([]Object{with(host("web", 1), func(o *Object) { o.Facts.Proxies = []string{"inner"} })}, after(1))
		j, _ := q.next(after(1))
		Expect(j.status.Proxy).To(Equal("inner"))
	})

	It("reports that Envoys are gone, counted from the last one", func() {
		gone := func() []Object {
			return []Object{with(host("web", 1), func(o *Object) { o.Facts.Replicas[0].Envoys = 0 })}
		}
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		Expect(q.take(gone(), after(10))).To(Equal(30 * time.Second))
		Expect(q.take(gone(), after(25))).To(Equal(15 * time.Second))
		Expect(q.take([]Object{host("web", 1)}, after(26))).To(BeZero())
		Expect(q.take(gone(), after(30))).To(Equal(30 * time.Second))
		Expect(drain(q, after(30))).To(HaveLen(1), "the number of Envoys")
		q.take(gone(), after(60))
		j, _ := q.next(after(60))
		Expect(j.status.Conditions[2].Reason).To(Equal("NotConnected"))
	})

	It("limits how often the number of Envoys is written", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		writes := 0
		for second := range 60 {
			o := with(host("web", 1), func(o *Object) { o.Facts.Replicas[0].Envoys = 2 + second%5 })
			q.take([]Object{o}, after(float64(1+second)))
			writes += len(drain(q, after(float64(1+second))))
		}
		Expect(writes).To(BeNumerically("<=", 6))
		Expect(writes).To(BeNumerically(">=", 4))
	})

	It("reports after some seconds that an Envoy lacks what every Envoy had", func() {
		lacking := with(host("web", 1), func(o *Object) { o.Facts.Replicas[0].Lacks = []conditions.Lack{{Envoy: "x"}} })
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		Expect(drain(q, start)).To(HaveLen(1))
		Expect(q.take([]Object{lacking}, after(20))).To(Equal(10 * time.Second))
		j, _ := q.next(after(20))
		Expect(*j.status.Envoys).To(Equal(int32(0)))
		Expect(j.status.Conditions[2].Reason).To(Equal("Programmed"))
		q.wrote(*j, 11, after(20))
		Expect(q.take([]Object{lacking}, after(29.9))).To(BeNumerically("~", 100*time.Millisecond, time.Millisecond))
		q.take([]Object{lacking}, after(30))
		j, _ = q.next(after(30))
		Expect(j.status.Conditions[2].Reason).To(Equal("Waiting"))
	})

	It("retries failed writes, and waits longer for an API server that stays away", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1), host("api", 1)}, start)
		first, _ := q.next(start)
		second, _ := q.next(start)
		q.away(*first, start)
		q.away(*second, start)
		j, wait := q.next(start)
		Expect(j).To(BeNil())
		Expect(wait).To(Equal(time.Second))
		j, _ = q.next(after(1))
		Expect(j).NotTo(BeNil())
		q.away(*j, after(1))
		_, wait = q.next(after(1))
		Expect(wait).To(Equal(2 * time.Second))
		Expect(drain(q, after(3))).To(HaveLen(2))

		By("the wait is limited, and short again after the API server has answered")
		q.take([]Object{host("web", 2), host("api", 2)}, after(4))
		at := after(4)
		for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
			j, _ = q.next(at)
			q.away(*j, at)
			_, wait = q.next(at)
			Expect(wait).To(Equal(time.Duration(seconds) * time.Second))
			at = at.Add(wait)
		}
		j, _ = q.next(at)
		q.wrote(*j, 99, at)
		j, _ = q.next(at)
		q.away(*j, at)
		_, wait = q.next(at)
		Expect(wait).To(Equal(time.Second))
	})

	It("retries an object, or a kind, without delaying others", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		j, _ := q.next(start)
		q.retry(*j, after(60))
		q.take([]Object{host("web", 1), host("api", 1)}, after(1))
		Expect(drain(q, after(1))).To(Equal([]string{"api"}))
		Expect(drain(q, after(59.9))).To(BeEmpty())
		Expect(drain(q, after(60))).To(Equal([]string{"web"}))

		By("a newer status is not lost with the patch of an older one")
		q.take([]Object{host("web", 2)}, after(70))
		j, _ = q.next(after(70))
		q.take([]Object{host("web", 3)}, after(71))
		q.retry(*j, time.Time{})
		j, _ = q.next(after(71))
		Expect(j.status.ObservedGeneration).To(Equal(int64(3)))

		By("a late answer does not undo what the cache has")
		q.take([]Object{with(host("web", 4), func(o *Object) { o.ResourceVersion = 200 })}, after(72))
		q.wrote(*j, 199, after(72))
		Expect(drain(q, after(72))).To(Equal([]string{"web"}))
		Expect(q.known[host("web", 1).Ref].version).To(Equal(int64(201)))

		By("a forbidden kind")
		q = newQueue("")
		q.take([]Object{host("web", 2), with(host("f", 1), func(o *Object) { o.Kind = "RouteFilter" })}, after(10))
		q.forbidden["GatewayHost"] = after(25)
		Expect(drain(q, after(10))).To(Equal([]string{"f"}))
		Expect(drain(q, after(25))).To(Equal([]string{"web"}))
	})

	It("forgets deleted objects, and treats a new object with the same name as another one", func() {
		q := newQueue("")
		q.take([]Object{host("web", 1)}, start)
		j, _ := q.next(start)
		q.take([]Object{with(host("web", 1), func(o *Object) { o.UID, o.ResourceVersion = "2", 12 })}, after(1))
		other, _ := q.next(after(1))
		Expect(other).To(BeNil(), "the patch of the one before is on its way")
		q.wrote(*j, 11, after(1)) // of the previous generation
		other, _ = q.next(after(1))
		Expect(string(other.uid)).To(Equal("2"))
		q.drop(*other)
		q.take(nil, after(2))
		Expect(q.known).To(BeEmpty())
		Expect(q.jobs).To(BeEmpty())
	})
})

var _ = DescribeTable("A resourceVersion", func(text string, n int64) { Expect(ParseVersion(text)).To(Equal(n)) },
	Entry(nil, "1234", int64(1234)), Entry(nil, "", int64(0)), Entry(nil, "x", int64(0)))
