package sqlstore_test

import (
	"database/sql"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ = Describe("What another program wrote", func() {
	It("does not hide what can be read", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "gatehouse.db")
		s := openStore(ctx, "sqlite://"+path)
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			for _, o := range []model.Object{
				&model.Service{Name: "shop", FQDN: "shop.example", HTTPS: model.HTTPSBoth},
				&model.Route{Service: "shop", Name: "root", Prefix: "/"},
			} {
				if err := w.Insert(o); err != nil {
					return err
				}
			}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		var mark model.Mark
		Expect(s.Read(ctx, func(r store.Reader) (err error) {
			mark, err = r.Mark()
			return err
		})).To(Succeed())
		other, err := sql.Open("sqlite", path)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Close)
		for _, statement := range []string{
			`UPDATE route SET config = '{"match":'`,
			`UPDATE revision SET revision = 3`,
			`INSERT INTO change_log (revision, seq, actor, at, request, kind, name, before, after) SELECT 3, 1, actor, at, request, kind, name, after, '{"route_config":{"match":7}}' FROM change_log WHERE kind = 'route'`,
		} {
			_, err := other.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}

		change, err := s.Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(change.Full).To(BeTrue(), "the log does not say what the route is now")
		Expect(change.Revision).To(Equal(int64(3)))
		found := map[model.Key]model.Object{}
		for _, e := range change.Entries {
			found[e.Key] = e.Object
		}
		Expect(found).To(HaveLen(3))
		Expect(found).To(And(HaveKey(model.ProxyKey("gw")), HaveKey(model.ServiceKey("shop"))))
		route := found[model.RouteKey("shop", "root")].(*model.Route) //nolint:forcetypeassert // of this key
		Expect(route.Config).To(Equal(model.RouteConfig{Unreadable: `{"match":`}))

		By("a write of another field neither hides it nor loses it")
		Expect(route.Validate()).To(ConsistOf(HaveField("Message", ContainSubstring("is not a route configuration"))))
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			route.Prefix = "/a"
			return w.Replace(route)
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Read(ctx, func(r store.Reader) error {
			obj, err := r.Get(route.Key())
			Expect(obj).To(HaveField("Config.Unreadable", `{"match":`))
			return err
		})).To(Succeed())
	})
})
