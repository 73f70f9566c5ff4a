package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("route configurations while changes keep coming", func() {
	const ms = time.Millisecond
	var (
		s        *plan.Stream
		begin    = time.Unix(1_800_000_000, 0)
		now      time.Time
		revision int64
		// takes is how long the Envoy reads a configuration, and until is when it has read
		// it. nonce is that of the pending response.
		takes   time.Duration
		answers time.Time
		nonce   string
		wake    time.Time
		// sent are the times at which configurations were sent.
		sent []time.Duration
	)
	// next sends what is due, and answers everything but routes immediately.
	next := func() {
		GinkgoHelper()
		var messages []plan.Message
		messages, wake = s.Next(now)
		for _, m := range messages {
			if m.Type != snapshot.RouteType {
				s.Ack(m.Nonce)
				continue
			}
			Expect(nonce).To(BeEmpty(), "one at a time")
			nonce, answers = m.Nonce, now.Add(takes)
			sent = append(sent, now.Sub(begin))
		}
	}
	// change writes another revision.
	change := func() {
		GinkgoHelper()
		revision++
		s.Want(world(revision, host("shop", cluster(fmt.Sprint("c", revision), 1, false))))
		next()
	}
	// until lets time pass up to a moment after begin: the Envoy answers, and the stream
	// checks when it wanted to.
	until := func(to time.Duration) {
		GinkgoHelper()
		end := begin.Add(to)
		for {
			switch {
			case nonce != "" && !answers.After(end) && (wake.IsZero() || !wake.After(now) || !answers.After(wake)):
				now = answers
				Expect(s.Ack(nonce)).NotTo(BeNil())
				nonce = ""
			case wake.After(now) && !wake.After(end):
				now = wake
			default:
				now = end
				return
			}
			next()
		}
	}
	reached := func(revision int64) bool {
		_, ok := s.Reached(plan.Goal{Revision: revision, Hosts: []string{"shop"}})
		return ok
	}

	BeforeEach(func() {
		s = plan.NewStream(plan.Options{})
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		now, revision, takes, nonce, wake, sent = begin, 0, 0, "", time.Time{}, nil
		change()
		until(0)
		takes, sent = 20*ms, nil
	})

	It("are sent immediately for a first change, even right after the last answer", func() {
		var at []time.Duration
		for i := range 10 {
			at = append(at, time.Duration(i)*20*ms)
			change()
			until(time.Duration(i+1) * 20 * ms)
			Expect(reached(revision)).To(BeTrue())
		}
		Expect(sent).To(Equal(at))
	})

	It("are sent as soon as the previous one is answered, for a few changes in a row", func() {
		change()
		until(5 * ms)
		change()
		until(22 * ms)
		change()
		until(40 * ms)
		Expect(sent).To(Equal([]time.Duration{0, 20 * ms}))
	})

	It("leave Envoy half of its time, and take no longer than it needs for two and its rest", func() {
		const last = 2000
		longest := time.Duration(0)
		waiting := map[int64]time.Duration{} // since when, by revision
		for i := range last {
			until(time.Duration(i) * ms)
			change()
			waiting[revision] = now.Sub(begin)
			for rev, since := range waiting {
				if reached(rev) {
					longest = max(longest, now.Sub(begin)-since)
					delete(waiting, rev)
				}
			}
		}
		// The first, the second in its row, then one every 40 ms.
		Expect(len(sent)).To(BeNumerically("~", last/40, 2))
		Expect(sent[:4]).To(Equal([]time.Duration{0, 20 * ms, 60 * ms, 100 * ms}))
		Expect(waiting).To(HaveLen(60), "of the last 60 ms")
		Expect(longest).To(Equal(60*ms), "until the next goes out, and until it is answered")
		until((last + 60) * ms)
		Expect(reached(revision)).To(BeTrue(), "the last change too")
	})

	It("are not held back any more once the changes pause", func() {
		for i := range 100 {
			until(time.Duration(i) * ms)
			change()
		}
		until(time.Second)
		Expect(reached(revision)).To(BeTrue())
		sent = nil
		change()
		Expect(sent).To(Equal([]time.Duration{time.Second}))
	})

	It("pause for a second at most, however long Envoy takes", func() {
		takes = 10 * time.Second
		for i := range 210 {
			until(time.Duration(i) * 100 * ms)
			change()
		}
		Expect(sent).To(Equal([]time.Duration{0, 10 * time.Second}))
		for i := range 20 {
			until(21*time.Second + time.Duration(i)*100*ms)
			change()
		}
		Expect(sent).To(Equal([]time.Duration{0, 10 * time.Second, 21 * time.Second}))
	})

	It("do not pause during the search for a guilty host", func() {
		for i := range 70 {
			until(time.Duration(i) * ms)
			change()
		}
		Expect(sent).To(Equal([]time.Duration{0, 20 * ms, 60 * ms}))
		var parts []*snapshot.Parts
		for i := range 8 {
			parts = append(parts, host(fmt.Sprint("new", i), cluster("a", 1, false)))
		}
		revision++
		s.Want(world(revision, parts...))
		until(100 * ms)
		Expect(sent).To(HaveLen(4))
		s.Nack(nonce, "no", now)
		nonce = ""
		next()
		until(120 * ms)
		Expect(sent[4:]).To(Equal([]time.Duration{100 * ms, 120 * ms}), "a part of them, and immediately the next")
	})
})
