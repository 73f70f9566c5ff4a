package acme

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ = Describe("A test", func() {
	var w *Watch
	var now time.Time
	// begin asks for a test.
	begin := func(host, by string) error {
		r, _, err := w.newTrial(host, by)
		if err == nil {
			w.trials[host] = r
		}
		return err
	}
	end := func(host string) { w.trials[host].state.Test.Ended = now }
	BeforeEach(func() {
		now = start
		w = New(Options{Now: func() time.Time { return now }})
		for _, host := range []string{"a.test", "b.test", "c.test", "shop.test"} {
			one := want(model.ACMEConfig{ExternalAccount: &model.ExternalAccount{KeyID: "me"}})
			one.host = host
			w.list = append(w.list, one)
		}
	})

	It("of a host runs once at a time, and five times in an hour", func() {
		Expect(begin("shop.test", "")).To(Succeed())
		Expect(begin("shop.test", "")).To(MatchError(HavePrefix("a test of shop.test runs already")))
		now = now.Add(9 * time.Minute)
		end("shop.test")
		for range 4 {
			Expect(begin("shop.test", "")).To(Succeed())
			end("shop.test")
		}
		err := begin("shop.test", "")
		Expect(err).To(MatchError("shop.test was tested 5 times in the last hour, which is the most"))
		many, _ := errors.AsType[*TooManyTests](err)
		Expect(many.After).To(Equal(51 * time.Minute))
		now = now.Add(51 * time.Minute)
		Expect(begin("shop.test", "")).To(Succeed(), "the first one is an hour ago")
		By("and one that nobody ends is over after a time")
		now = now.Add(trialEnd)
		Expect(describeTrial(w.list[3], w.trials["shop.test"], now)).To(And(HaveField("State", "failed"), HaveField("Reason", "nobody ended it in time")))
	})

	It("of one caller keeps no other waiting", func() {
		Expect(begin("a.test", "team")).To(Succeed())
		Expect(begin("b.test", "team")).To(Succeed())
		Expect(begin("c.test", "team")).To(MatchError("2 tests of yours run already, which is the most"))
		Expect(begin("c.test", "other")).To(Succeed())
		Expect(begin("shop.test", "")).To(Succeed())
		end("a.test")
		end("c.test")
		Expect(begin("c.test", "team")).To(Succeed())
	})

	It("does not begin while as many run as may, or while an order answers for its host", func() {
		Expect(begin("shop.test", "")).To(Succeed())
		w.trials["shop.test"].state.Due = now.Add(time.Second)
		startAll := func() time.Duration { return w.startTrials(context.Background(), nil, now) } // without a group, it cannot
		Expect(startAll()).To(Equal(time.Second))
		w.trials["shop.test"].state.Due = time.Time{}
		w.testing = mostTrials
		Expect(startAll()).To(Equal(longestLook))
		w.testing = 0
		w.rows["shop.test"] = &row{state: state{Token: "own"}}
		Expect(startAll()).To(Equal(longestLook))
		delete(w.rows, "shop.test")
		Expect(func() { startAll() }).To(Panic(), "it would begin now")
	})

	It("is of hosts that can be ordered for only", func() {
		Expect(model.IsKind(begin("other.test", ""), model.NotFound)).To(BeTrue())
		w.list[0].problem = "there is no authority"
		Expect(begin("a.test", "")).To(MatchError(ContainSubstring("there is no authority")))
		w.list[1].byHand = true
		Expect(begin("b.test", "")).To(Succeed())
	})

	It("waits until the record of the one before is removed", func() {
		Expect(begin("shop.test", "")).To(Succeed())
		end("shop.test")
		w.trials["shop.test"].state.Records = []txtRecord{{"n", "v"}}
		Expect(begin("shop.test", "")).To(MatchError(HavePrefix("the record in DNS of the last test of shop.test is being removed")))
		w.trials["shop.test"].state.Removal.Error = "no"
		Expect(begin("shop.test", "")).To(Succeed())
		Expect(w.trials["shop.test"].state.Records).To(HaveLen(1), "it is still to be removed")
	})

	DescribeTable("asks the directory for tests", func(directory, tests, url string, external bool) {
		one := want(model.ACMEConfig{ExternalAccount: &model.ExternalAccount{KeyID: "me"}})
		one.from.config.Directory, one.from.config.TestDirectory = directory, tests
		w.list = []wanted{one}
		got, err := w.trialOf("shop.test")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.from.config.URL()).To(Equal(url))
		Expect(got.from.config.ExternalAccount != nil).To(Equal(external))
		Expect(one.from.config.Directory).To(Equal(directory))
	},
		Entry("of production", "production", "", "https://acme-staging-v02.api.letsencrypt.org/directory", false),
		Entry("of staging", "staging", "", "https://acme-staging-v02.api.letsencrypt.org/directory", true),
		Entry("of another authority", directory, "", directory, true),
		Entry("that is named", directory, "https://test.ca.test/dir", "https://test.ca.test/dir", false),
	)

	It("is answered for beside an order, and only while it runs", func() {
		Expect(begin("shop.test", "")).To(Succeed())
		r := w.trials["shop.test"]
		r.state.Token, r.state.Answer = "token", "answer"
		r.derive()
		tells := func() *model.Challenge { return w.tells(w.list[3]).Challenge }
		Expect(tells()).To(Equal(&model.Challenge{Token: "token", Answer: "answer"}))
		mine := &row{Automatic: store.Automatic{Host: "shop.test"}, state: state{Token: "own"}}
		mine.derive()
		w.rows["shop.test"] = mine
		Expect(tells().Token).To(Equal("own"), "an order comes first")
		delete(w.rows, "shop.test")
		now = now.Add(trialEnd)
		Expect(tells()).To(BeNil())
	})
})
