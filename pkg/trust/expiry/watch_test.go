package expiry

import (
	"context"
	"log/slog"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestExpiry(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Expiry")
}

// oneChange is a source with one change.
type oneChange struct{ change model.Change }

func (s oneChange) Since(context.Context, model.Mark) (model.Change, error) { return s.change, nil }
func (s oneChange) Changed() <-chan struct{}                                { return nil }

var _ = Describe("A certificate", func() {
	It("gets the conditions and events of its expiry as time passes", func(ctx SpecContext) {
		ca, err := testkit.NewAuthority("root")
		Expect(err).NotTo(HaveOccurred())
		end := time.Now().Add(4 * time.Second).Truncate(time.Second)
		pair, err := ca.Issue(testkit.CertificateOptions{Names: []string{"shop.example"}, NotAfter: end})
		Expect(err).NotTo(HaveOccurred())
		change := model.Change{Full: true}
		for _, o := range []model.Object{
			&model.Secret{Name: "tls", Cert: pair.Cert, PrivateKey: "sealed", NotAfter: new(model.At(end))},
			&model.Service{Name: "shop", FQDN: "shop.example", HTTPS: "both"}, &model.ServiceSecret{Service: "shop", Secret: "tls"},
		} {
			change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		registry := status.NewRegistry()
		from := registry.Feed().Now()
		watch := New(Options{
			Source: oneChange{change}, Status: registry, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		})
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- watch.Run(running) }()
		_, err = watch.Since(ctx, model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		Expect(watch.Ends()).To(HaveKeyWithValue("tls", BeNumerically("~", 0, 5)))

		codes := func() (list []string) {
			for _, c := range registry.Conditions() {
				list = append(list, c.Key.Path()+" "+c.Code)
			}
			return list
		}
		Eventually(codes).WithContext(ctx).WithTimeout(20 * time.Second).Should(ConsistOf("/secret/tls CertificateExpired", "/service/shop CertificateExpired"))
		Expect(watch.Ends()["tls"]).To(BeNumerically("<=", 0))
		var told []string
		events, _ := registry.Feed().After(from, 10)
		for _, e := range events {
			told = append(told, e.Event+" "+e.Object+" "+e.Code)
		}
		Expect(told).To(Equal([]string{"certificate /secret/tls CertificateExpires", "certificate /secret/tls CertificateExpired"}))
		stop()
		Eventually(ended).Should(Receive(BeNil()))
	})

	It("of the xDS port that ends is a condition of each proxy, and in the metrics", func(ctx SpecContext) {
		now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
		start, registry, day := now, status.NewRegistry(), 24*time.Hour
		gw, old := &model.Proxy{Name: "gw"}, model.ProxyKey("old")
		change := model.Change{Entries: []model.Entry{{Key: gw.Key(), Object: gw}, {Key: old}}}
		port := func() []End {
			return []End{
				{Kind: "certificate", What: "the certificate", File: "xds.crt", At: start.Add(10 * day), Notice: 10 * day, Effect: "Envoys that connect refuse it"},
				{Kind: "client_ca", What: "the client authority CN=a", File: "ca.crt", At: start.Add(10 * day), Notice: 10*day - time.Second, Effect: "nobody sees this"},
				{Kind: "client_ca", What: "the client authority CN=b", File: "ca.crt", At: start, Notice: day, Effect: "they are refused"},
				{Kind: "client_crl", What: "the revocation list of CN=a", File: "crl", At: start.Add(day), Effect: "nobody sees this"},
			}
		}
		watch := New(Options{
			Source: oneChange{change}, Status: registry, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return now }, Port: port,
		})
		_, err := watch.Since(ctx, model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		Expect(registry.Conditions()).To(ConsistOf(
			model.Condition{Key: gw.Key(), Code: model.CertificateExpires, Message: "of the xDS port, the certificate (xds.crt) ends at 2026-01-20 00:00:00 UTC: Envoys that connect refuse it"},
			model.Condition{Key: gw.Key(), Code: model.CertificateExpired, Message: "of the xDS port, the client authority CN=b (ca.crt) ended at 2026-01-10 00:00:00 UTC: they are refused"},
		))
		Expect(watch.PortEnds()).To(Equal(map[string]float64{"certificate": 864000, "client_ca": 0, "client_crl": 86400}))
		now = now.Add(day)
		Expect(watch.look()).To(Equal(now.Add(time.Minute)), "it looks again")
		Expect(registry.Conditions()).To(HaveLen(4))
	})
})
