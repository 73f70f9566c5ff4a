package precheck_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

// BenchmarkCheck checks a transaction that creates services, each with a route
// and an upstream, and one that adds a route to a service with as many routes.
func BenchmarkCheck(b *testing.B) {
	const services = 2000
	ctx, givenUp := context.Background(), errors.New("given up")
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + filepath.Join(b.TempDir(), "gatehouse.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	check := func(b *testing.B, written func(w store.Writer) (store.Changes, error)) {
		_, err := db.Write(ctx, store.Origin{Actor: "bench"}, func(w store.Writer) error {
			changes, err := written(w)
			if err != nil {
				return err
			}
			for b.Loop() {
				if err := (precheck.Rules{}).Check(w, changes); err != nil {
					return err
				}
			}
			return givenUp
		})
		if !errors.Is(err, givenUp) {
			b.Fatal(err)
		}
	}
	b.Run("bulk", func(b *testing.B) {
		check(b, func(w store.Writer) (store.Changes, error) {
			for i := range services {
				name := fmt.Sprintf("s%d", i)
				u := model.NewUpstream()
				u.Name, u.IP, u.Port = name, "192.0.2.1", 80
				for _, obj := range []model.Object{
					u, &model.Service{Name: name, FQDN: name + ".example.com", HTTPS: model.HTTPSBoth}, &model.Route{Service: name, Name: "root", Prefix: "/"},
					&model.RouteUpstream{Service: name, Route: "root", Upstream: name},
				} {
					if err := w.Insert(obj); err != nil {
						return nil, err
					}
				}
			}
			return w.Written(), nil
		})
	})
	b.Run("one of many", func(b *testing.B) {
		check(b, func(w store.Writer) (store.Changes, error) {
			u := model.NewUpstream()
			u.Name, u.IP, u.Port = "u", "192.0.2.1", 80
			objs := []model.Object{u, &model.Service{Name: "shop", FQDN: "*", HTTPS: model.HTTPSBoth}}
			for i := range services {
				name := fmt.Sprintf("r%d", i)
				objs = append(objs, &model.Route{Service: "shop", Name: name, Prefix: "/"}, &model.RouteUpstream{Service: "shop", Route: name, Upstream: "u"})
			}
			for _, obj := range objs {
				if err := w.Insert(obj); err != nil {
					return nil, err
				}
			}
			changed := &model.Route{Service: "shop", Name: "r7", Prefix: "/new"}
			return store.ChangesOf([]store.Written{{Key: changed.Key(), Before: changed, After: changed}}), w.Replace(changed)
		})
	})
}
