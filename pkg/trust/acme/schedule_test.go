package acme

import (
	"errors"
	"net/http"
	"strings"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	day       = 24 * time.Hour
	directory = "https://ca.test/dir"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func want(config model.ACMEConfig) wanted {
	config.Directory = directory
	return wanted{service: &model.Service{Name: "shop"}, host: "shop.test", from: &authority{name: "ca", config: &config}}
}

// issuedFor is a row with a certificate that is valid for a time from start, whose renewal the authority has not been
// asked about again for a long time.
func issuedFor(life time.Duration) *row {
	return &row{
		state: state{Directory: directory, InfoAt: start.Add(1000 * day)}, certificate: &certificate{start, start.Add(life), "1"},
	}
}

var _ = Describe("What is due", func() {
	It("is an order, or a placeholder first, while there is nothing", func() {
		do, _ := next(want(model.ACMEConfig{}), nil, start)
		Expect(do).To(Equal(order))
		do, _ = next(want(model.ACMEConfig{Placeholder: true}), nil, start)
		Expect(do).To(Equal(placeholder))
		shown := &row{Automatic: store.Automatic{Cert: "x"}, state: state{Placeholder: true}}
		do, _ = next(want(model.ACMEConfig{Placeholder: true}), shown, start)
		Expect(do).To(Equal(order))
	})

	It("is nothing for a host with a certificate by hand, or without an authority", func() {
		w := want(model.ACMEConfig{})
		w.byHand = true
		do, at := next(w, nil, start)
		Expect([]any{do, at}).To(Equal([]any{wait, time.Time{}}))
		do, _ = next(wanted{service: w.service, host: w.host, problem: "none"}, nil, start)
		Expect(do).To(Equal(wait))
	})

	DescribeTable("is a renewal after two thirds of the life", func(life, after time.Duration) {
		do, at := next(want(model.ACMEConfig{}), issuedFor(life), start)
		Expect(do).To(Equal(wait))
		Expect(at).To(Equal(start.Add(after)))
		do, _ = next(want(model.ACMEConfig{}), issuedFor(life), start.Add(after))
		Expect(do).To(Equal(order))
	},
		Entry("of 90 days", 90*day, 60*day),
		Entry("of 6 days", 6*day, 4*day),
	)

	It("is a renewal when the authority wants it, at once if it revokes, but not too late", func() {
		r := issuedFor(90 * day)
		for at, want1 := range map[time.Time]time.Time{
			start.Add(70 * day):  start.Add(70 * day),
			start.Add(-day):      start.Add(-day),
			start.Add(300 * day): start.Add(81 * day),
		} {
			r.state.RenewAt = at
			Expect(r.orderAt(want(model.ACMEConfig{}))).To(Equal(want1))
		}
		r.state.RenewAt = start.Add(-day)
		do, _ := next(want(model.ACMEConfig{}), r, start)
		Expect(do).To(Equal(order))
	})

	It("is an order from the new authority, and whenever a user asks", func() {
		r := issuedFor(90 * day)
		r.state.Directory = "https://other.test/dir"
		do, _ := next(want(model.ACMEConfig{}), r, start)
		Expect(do).To(Equal(order))
		r = issuedFor(90 * day)
		r.Asked, r.state.Due = 1, start.Add(day)
		do, _ = next(want(model.ACMEConfig{}), r, start)
		Expect(do).To(Equal(order))
	})

	It("waits after failures, up to a day, and asks nothing of the authority meanwhile", func() {
		r := &row{}
		var pauses []time.Duration
		for failures := 1; failures <= 9; failures++ {
			pauses = append(pauses, r.retry(start, failures, 0).Sub(start))
		}
		Expect(pauses).To(Equal([]time.Duration{
			time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute, 256 * time.Minute, 1024 * time.Minute, day, day, day,
		}))
		r.state.Failures, r.state.Due = 1, start.Add(time.Minute)
		do, at := next(want(model.ACMEConfig{}), r, start)
		Expect([]any{do, at}).To(Equal([]any{wait, start.Add(time.Minute)}))
	})

	It("is tried more often before a certificate ends, and never before the authority allows it", func() {
		r := issuedFor(6 * day)
		Expect(r.retry(start.Add(5*day), 20, 0)).To(Equal(start.Add(5*day + 6*time.Hour)))
		Expect(r.retry(start.Add(7*day), 20, 0)).To(Equal(start.Add(7*day + time.Minute)))
		Expect(r.retry(start, 1, 3*time.Hour)).To(Equal(start.Add(3 * time.Hour)))
		Expect(r.retry(start, 1, 1000*day)).To(Equal(start.Add(longestHold)), "nobody makes us wait for ever")
	})

	It("is a renewal every four days over a year of six-day certificates, whatever the clock does", func() {
		r, now, orders := issuedFor(6*day), start, 0
		for now.Before(start.Add(360 * day)) {
			do, at := next(want(model.ACMEConfig{}), r, now)
			if do == order {
				orders++
				r.certificate = &certificate{now, now.Add(6 * day), "1"}
				r.state.InfoAt = now.Add(1000 * day)
				continue
			}
			Expect(at).To(BeTemporally(">", now))
			Expect(now).To(BeTemporally("<", r.certificate.notAfter))
			now = at
		}
		Expect(orders).To(Equal(89))
		By("and once more after a jump ahead, and none after a jump back")
		do, _ := next(want(model.ACMEConfig{}), r, now.Add(10000*day))
		Expect(do).To(Equal(order))
		do, _ = next(want(model.ACMEConfig{}), r, start)
		Expect(do).To(Equal(wait))
	})

	It("waits after early renewals, and not beyond the end", func() {
		for life, pauses := range map[time.Duration][]time.Duration{
			90 * day:         {0, time.Minute, 4 * time.Minute, 16 * time.Minute},
			20 * time.Second: {0, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		} {
			r, of := &row{}, &certificate{start, start.Add(life), "1"}
			for i, pause := range pauses {
				r.state = r.replaced(of, directory, start, 0)
				Expect(r.state.Early).To(Equal(i))
				Expect(later(r.state.Due, start).Sub(start)).To(Equal(pause))
			}
			r.state = r.replaced(of, directory, start.Add(life/2), 0)
			Expect(r.state.Early).To(BeZero())
		}
		r := &row{state: state{Directory: directory, IssuedAt: start, Renew: true}}
		Expect(r.replaced(&certificate{start, start.Add(day), "1"}, directory, start, 0).Early).To(BeZero(), "a user wants it")
	})

	It("follows what the authority suggests, and keeps the moment while it still fits", func() {
		var s state
		suggest := func(from, to time.Time) (info window) {
			info.SuggestedWindow.Start, info.SuggestedWindow.End = from, to
			return info
		}
		s.follow(suggest(start, start.Add(day)), start)
		chosen := s.RenewAt
		Expect(chosen).To(And(BeTemporally(">=", start), BeTemporally("<=", start.Add(day))))
		s.follow(suggest(start.Add(-day), start.Add(2*day)), start)
		Expect(s.RenewAt).To(Equal(chosen))
		s.follow(suggest(start.Add(-2*day), start.Add(-day)), start)
		Expect(s.RenewAt).To(BeTemporally("<=", start.Add(-day)), "it is about to be revoked")
		info := suggest(start, start)
		info.again = 1000 * day
		s.follow(info, start)
		Expect(s.InfoAt).To(Equal(start.Add(day)), "it is asked at least once a day")
		info.again = time.Second
		s.follow(info, start)
		Expect(s.InfoAt).To(Equal(start.Add(time.Minute)), "and not all the time")
	})
})

// setOf is what a configuration with these objects says.
func setOf(objects ...model.Object) *set {
	s := newSet()
	change := model.Change{Full: true}
	for _, o := range objects {
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	s.apply(change)
	return s
}

func serviceOf(name, host, certificate string) *model.Service {
	return &model.Service{Name: name, FQDN: host, Certificate: certificate, Mode: model.ModeHTTP}
}

// configOf is a global config, with more of its JSON.
func configOf(name, more string) *model.GlobalConfig {
	return &model.GlobalConfig{Name: name, Type: model.GlobalConfigACME, Config: model.JSON(`{"directory":"https://` + name + `.test/dir","terms_agreed":true` + more + `}`)}
}

func onProxy(proxy, service string) model.Object {
	return &model.ProxyService{Proxy: proxy, Service: service}
}

var _ = Describe("What is wanted", func() {
	apply, service, config, on := setOf, serviceOf, configOf, onProxy

	It("is a certificate for each service that says so, and for no other host", func() {
		s := apply(config("ca", ""), service("a", "A.test", "auto"), service("b", "b.test", ""), service("c", "c.test", "manual"),
			service("d", "*", "auto"), on("gw", "a"), on("gw", "b"), on("gw", "c"), on("gw", "d"))
		list := s.wanted("")
		Expect(list).To(HaveLen(1))
		Expect([]string{list[0].host, list[0].problem, list[0].from.config.URL()}).To(Equal([]string{"a.test", "", "https://ca.test/dir"}))
	})

	It("is one for every service where the authority is for all", func() {
		s := apply(config("ca", `,"every_service":true`), service("a", "a.test", ""), service("b", "b.test", "manual"), service("c", "*", ""),
			service("d", "192.0.2.1", ""), service("e", "e.test", ""), on("gw", "a"), on("gw", "b"), on("gw", "c"), on("gw", "d"))
		list := s.wanted("")
		Expect(list).To(HaveLen(1))
		Expect(list[0].host).To(Equal("a.test"), "e is on no proxy")
	})

	It("is one for every service of the proxies that the authority is attached to", func() {
		s := apply(config("ca", `,"every_service":true`), service("a", "a.test", ""), service("b", "b.test", ""), service("c", "*.c.test", ""),
			on("gw", "a"), on("edge", "b"), on("gw", "c"), &model.ProxyGlobalConfig{Proxy: "gw", GlobalConfig: "ca"})
		list := s.wanted("")
		Expect(list).To(HaveLen(1), "a wildcard needs a hook")
		Expect(list[0].host).To(Equal("a.test"))
	})

	It("has one authority for each host, so that two services do not take turns", func() {
		s := apply(config("one", ""), config("two", ""), service("a", "a.test", "auto"), service("b", "A.test", "auto"), on("gw", "a"), on("edge", "b"),
			&model.ProxyGlobalConfig{Proxy: "gw", GlobalConfig: "one"}, &model.ProxyGlobalConfig{Proxy: "edge", GlobalConfig: "two"})
		list := s.wanted("")
		Expect(list).To(HaveLen(2))
		Expect(list[1].from).To(BeIdenticalTo(list[0].from))
	})

	It("says what is missing", func() {
		Expect(apply(service("a", "a.test", "auto")).wanted("")[0].problem).To(Equal("no proxy serves it: attach it to one"))
		Expect(apply(service("a", "a.test", "auto"), on("gw", "a")).wanted("")[0].problem).To(ContainSubstring("globalconfig_acme"))
		Expect(apply(service("a", "a.test", "auto"), on("gw", "a"), config("ca", `,"ca_certificate":"no"`)).wanted("")[0].problem).
			To(Equal("globalconfig ca names the secret no, which has no certificate"))
	})
})

var _ = Describe("What an authority said", func() {
	It("is kept as a line, with what to do", func() {
		for kind, advice := range map[string]string{
			"dns": "A and AAAA", "connection": "port 80", "unauthorized": "DNS points elsewhere", "caa": "CAA record", "rateLimited": "staging",
		} {
			text, what := explain(protocol.Problem{Type: protocol.ProblemTypeNamespace + kind, Detail: "a\x1b[2J" + strings.Repeat("x", 1000)}, "shop.test")
			Expect(text).To(HavePrefix(kind + ": a?[2Jxx"))
			Expect(text).To(HaveLen(mostText))
			Expect(what).To(ContainSubstring(advice))
		}
		text, _ := explain(errors.New("odd"), "shop.test")
		Expect(text).To(Equal("odd"))
	})

	It("about waiting is read in both forms, with a bound", func() {
		Expect(retryAfter("120", start)).To(Equal(2 * time.Minute))
		Expect(retryAfter(start.Add(time.Hour).Format(http.TimeFormat), start)).To(Equal(time.Hour))
		Expect(retryAfter("99999999999", start)).To(Equal(longestHold))
		Expect(retryAfter("999999999", start)).To(Equal(longestHold))
		Expect(retryAfter("-1", start)).To(BeZero())
		Expect(retryAfter("soon", start)).To(BeZero())
	})

	It("belongs to a registered domain", func() {
		Expect(domainOf("a.b.shop.co.uk")).To(Equal("shop.co.uk"))
		Expect(domainOf("localhost")).To(Equal("localhost"))
	})
})
