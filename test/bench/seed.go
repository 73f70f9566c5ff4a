package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// seed makes a database with a proxy that listens on the port, and the routes, as the
// same calls of the API would have left them.
func seed(ctx context.Context, database string, port int, routes []layout.Route) error {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: database})
	if err != nil {
		return fmt.Errorf("making the database: %w", err)
	}
	const perTransaction = 2000
	for part := range slices.Chunk(objects(port, routes), perTransaction) {
		_, err = s.Write(ctx, store.Origin{Actor: "bench", Request: "seed"}, func(w store.Writer) error {
			for _, o := range part {
				if err := w.Insert(o); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			err = fmt.Errorf("filling the database: %w", err)
			break
		}
	}
	return errors.Join(err, s.Close())
}

func objects(port int, routes []layout.Route) []model.Object {
	proxy := model.NewProxy()
	proxy.Name, proxy.ListenIP, proxy.HTTPPort, proxy.HTTPSPort = layout.Node, layout.Address, port, httpsPort(port)
	list := []model.Object{proxy}
	known := map[string]bool{}
	for _, r := range routes {
		if !known[r.Service] {
			known[r.Service] = true
			list = append(list, &model.Service{Name: r.Service, FQDN: r.FQDN()},
				&model.ProxyService{Proxy: layout.Node, Service: r.Service})
		}
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = r.Upstream, layout.Address, r.Port
		list = append(list, u, &model.Route{Service: r.Service, Name: r.Name, Prefix: r.Prefix},
			&model.RouteUpstream{Service: r.Service, Route: r.Name, Upstream: r.Upstream})
	}
	return list
}

// httpsPort returns another port than that of HTTP; nothing listens there yet.
func httpsPort(httpPort int) int { return httpPort%60000 + 1 }
