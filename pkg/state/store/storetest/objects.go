package storetest

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func objectSpecs(h *harness) {
	It("are returned with every field as it was sent", func(ctx SpecContext) {
		regex, websocket := `^v\d+$`, false
		sent := []model.Object{
			&model.Secret{Name: "ca"},
			&model.Upstream{
				Name: "blue", IP: "2001:db8::1", Port: 8443, Weight: 0, Priority: 7, Zone: "a", ZoneMinCount: 23, SlowStartSeconds: 24, DNS: "logical", DNSFamily: "all", DNSRefreshSeconds: 25, ProxyProtocol: "v1", HCType: model.HCTypeTCP, HCPath: "/h", HCHost: "h.example",
				HCIntervalSeconds: 1, HCTimeoutSeconds: 2, HCUnhealthyThresholdCount: 3, HCHealthyThresholdCount: 4,
				Strategy: "maglev", Protocol: "h2", ValidationCACertificate: "ca", ValidationSubjectName: "b.example", ValidationAltNames: "c.example",
				TLSInsecure: true, ClientCertificate: "ca",
				ConnectTimeoutSeconds: 11, IdleTimeoutSeconds: 12, KeepaliveIntervalSeconds: 13,
				MaxConnections: 14, MaxPending: 15, MaxRequests: 16, MaxRetries: 17, RetryBudgetPercent: 21, RetryBudgetMinCount: 22,
				OutlierThresholdCount: 18, OutlierEjectionSeconds: 19, PanicThresholdPercent: 20,
			},
			&model.Service{Name: "shop", FQDN: "*.Example.com", HTTPS: model.HTTPSOnly, HSTSSeconds: 86_400, HSTSSubdomains: true, ClientCACertificate: "ca", Certificate: model.CertificateManual, Mode: model.ModeHTTP, Port: 7},
			&model.Route{Service: "shop", Name: "root", Prefix: "/a", Config: model.RouteConfig{
				Match: "segment", Methods: []string{"GET", "PUT"},
				Headers:  []model.ValueMatch{{Name: "x-version", Regex: &regex, Invert: true}},
				Rewrite:  &model.Rewrite{Prefix: "/b", Host: "c.example"},
				Timeouts: &model.Timeouts{Request: model.Duration(1500 * time.Millisecond)},
				Retries: &model.Retries{
					Attempts: 2, On: []string{"5xx"},
					Backoff: model.Duration(100 * time.Millisecond), MaxBackoff: model.Duration(400 * time.Millisecond),
				},
				Websocket: &websocket, Priority: 7,
			}},
			&model.Proxy{Name: "gw", HTTPPort: 80, HTTPSPort: 443, ListenIP: "::", TrustedHops: 2, EscapedSlashes: "keep", UnderscoreHeaders: "drop", TLSMinVersion: "1.3", HTTP3: true, AltSvcPort: 444},
			&model.RouteUpstream{Service: "shop", Route: "root", Upstream: "blue"},
			&model.ProxyService{Proxy: "gw", Service: "shop"},
		}
		h.create(ctx, sent...)
		for _, want := range sent {
			got, err := h.get(ctx, want.Key())
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(want))
			Expect(*got.Meta().ID).To(Equal(int64(1)))
		}
		By("also by the change feed, in full and in part")
		for _, revision := range []int64{0, 1} {
			if revision == 1 {
				h.write(ctx, touchAll(sent))
			}
			var got []model.Object
			for _, e := range h.since(ctx, revision).Entries {
				got = append(got, e.Object)
			}
			Expect(got).To(Equal(sent))
		}
	})

	It("keep timestamps to the microsecond, in UTC", func(ctx SpecContext) {
		east := time.FixedZone("", 2*60*60)
		now := time.Date(2026, 11, 21, 10, 7, 39, 123456789, east)
		s := h.open(ctx, Settings{Now: func() time.Time { return now }})
		u := upstream("blue")
		_, err := s.Write(ctx, origin(), func(w store.Writer) error { return w.Insert(u) })
		Expect(err).NotTo(HaveOccurred())
		Expect(u.CreateTS.String()).To(Equal("2026-11-21T08:07:39.123456+00:00"))

		got, err := h.get(ctx, u.Key())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Meta().CreateTS.String()).To(Equal("2026-11-21T08:07:39.123456+00:00"))
		Expect(got.Meta().UpdateTS.String()).To(Equal("2026-11-21T08:07:39.123456+00:00"))

		By("a replacement keeps the id and the creation time")
		now = time.Date(2026, 11, 21, 10, 8, 0, 1000, east)
		changed := upstream("blue")
		changed.Port = 9000
		_, err = s.Write(ctx, origin(), func(w store.Writer) error { return w.Replace(changed) })
		Expect(err).NotTo(HaveOccurred())
		got, err = h.get(ctx, u.Key())
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(changed))
		Expect(*got.Meta().ID).To(Equal(int64(1)))
		Expect(got.Meta().CreateTS.String()).To(Equal("2026-11-21T08:07:39.123456+00:00"))
		Expect(got.Meta().UpdateTS.String()).To(Equal("2026-11-21T08:08:00.000001+00:00"))
	})

	DescribeTable("store text as it was sent", func(ctx SpecContext, text string) {
		s := service("shop", text)
		r := route("shop", "root")
		r.Prefix, r.Config.Methods = text, []string{text}
		h.create(ctx, s, r)
		got, err := h.get(ctx, s.Key())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.(*model.Service).FQDN).To(Equal(text))
		got, err = h.get(ctx, r.Key())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.(*model.Route).Prefix).To(Equal(text))
		Expect(got.(*model.Route).Config.Methods).To(Equal([]string{text}))
	},
		Entry("quotes", `it's "here" \ or; -- not`),
		Entry("wildcards", `100%_of_?*`),
		Entry("placeholders", `$1 ? :name @at`),
		Entry("Unicode", "Grüße, 世界 🚪"),
		Entry("markup and lines", "<b>&amp;</b>\n\ttab"),
		Entry("nothing", ""),
	)

	It("have increasing ids that are never reused", func(ctx SpecContext) {
		for i, name := range []string{"a", "b"} {
			u := upstream(name)
			h.create(ctx, u)
			Expect(u.ID).To(Equal(int64(i + 1)))
		}
		_, err := h.remove(ctx, model.UpstreamKey("b"))
		Expect(err).NotTo(HaveOccurred())
		again := upstream("b")
		h.create(ctx, again)
		Expect(again.ID).To(BeNumerically(">", 2))
	})

	DescribeTable("are not found if they do not exist", func(ctx SpecContext, key model.Key) {
		_, err := h.get(ctx, key)
		Expect(err).To(beOfKind(model.NotFound))
		_, err = h.store.Write(ctx, origin(), func(w store.Writer) error { return w.Remove(key) })
		Expect(err).To(beOfKind(model.NotFound))
	},
		Entry("a name", model.ServiceKey("shop")),
		Entry("a nested name", model.RouteKey("shop", "root")),
		Entry("a name in another letter case", model.UpstreamKey("BLUE")),
		Entry("an empty name", model.UpstreamKey("")),
		Entry("a name with a slash", model.UpstreamKey("a/b")),
		Entry("a NUL", model.UpstreamKey("a\x00b")),
		Entry("invalid UTF-8", model.UpstreamKey("a\xffb")),
	)

	It("can be replaced only if they exist", func(ctx SpecContext) {
		_, err := h.store.Write(ctx, origin(), func(w store.Writer) error { return w.Replace(upstream("blue")) })
		Expect(err).To(MatchError(`upstream "blue" does not exist`))
		Expect(err).To(beOfKind(model.NotFound))
	})

	It("need a unique name, and a transaction continues after a conflict", func(ctx SpecContext) {
		h.create(ctx, upstream("blue"))
		h.write(ctx, func(w store.Writer) error {
			err := w.Insert(upstream("blue"))
			Expect(err).To(beOfKind(model.Exists))
			Expect(err).To(MatchError(HavePrefix(`upstream "blue" already exists`)))
			return w.Insert(upstream("Blue"))
		})
		Expect(h.names(ctx, store.Query{Kind: model.KindUpstream})).To(Equal([]string{"blue", "Blue"}))
	})

	It("have references that are enforced even if nobody checks them first", func(ctx SpecContext) {
		_, err := h.store.Write(ctx, origin(), func(w store.Writer) error { return w.Insert(route("none", "root")) })
		Expect(err).To(beOfKind(model.NotFound))
		h.create(ctx, shop()...)
		_, err = h.store.Write(ctx, origin(), func(w store.Writer) error { return w.Remove(model.UpstreamKey("blue")) })
		Expect(err).To(beOfKind(model.InUse))
	})

	It("are kept when the store is closed and opened again", func(ctx SpecContext) {
		h.create(ctx, shop()...)
		Expect(h.store.Close()).To(Succeed())
		h.store = h.open(ctx, Settings{})
		Expect(h.revision(ctx)).To(Equal(int64(1)))
		Expect(paths(h.since(ctx, 0))).To(Equal([]string{
			"/upstream/blue", "/service/shop", "/service/shop/route/root", "/proxy/gw",
			"/service/shop/route/root/upstream/blue", "/proxy/gw/service/shop",
		}))
	})

	It("do not affect a ping, which fails once its context has ended", func(ctx SpecContext) {
		Expect(h.store.Ping(ctx)).To(Succeed())
		ended, cancel := context.WithCancel(ctx)
		cancel()
		err := h.store.Ping(ended)
		Expect(errors.Is(err, ended.Err())).To(BeTrue(), "%v", err)
		_, err = h.store.Write(ended, origin(), func(store.Writer) error { return nil })
		Expect(errors.Is(err, ended.Err())).To(BeTrue(), "%v", err)
		Expect(err).NotTo(beOfKind(model.Unavailable))
	})
}

// touchAll writes objects again, with new ids and times.
func touchAll(objs []model.Object) func(store.Writer) error {
	return func(w store.Writer) error {
		for i := len(objs) - 1; i >= 0; i-- {
			if err := w.Remove(objs[i].Key()); err != nil {
				return err
			}
		}
		return createAll(w, objs...)
	}
}
