package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// adminPort is the admin endpoint for other machines. It lets callers of the API do
// what Envoy's own endpoint would let any web page on this machine do.
type adminPort struct {
	listener net.Listener
	http     *http.Server
}

func openAdmin(ctx context.Context, cfg config.Config, plane *controlPlane, of rest.AdminOptions) (*adminPort, error) {
	l, err := listen(ctx, cfg.AdminAddr, "admin-addr", "Envoy's admin endpoint")
	if err != nil {
		return nil, err
	}
	mayOpen, err := checkAdminAccess(ctx, cfg, l.Addr(), plane.store, plane.log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &adminPort{listener: l, http: &http.Server{
		Handler: rest.NewAdmin(rest.Options{
			Tokens: plane.store, AdminToken: cfg.APIAdminToken, OpenWithoutTokens: mayOpen, Hosts: cfg.APIHosts, Log: plane.log,
		}, of),
		ReadTimeout: 10 * time.Second,
		// A client that reads slowly occupies one of the few slots for requests to
		// Envoy.
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(plane.log.Handler(), slog.LevelDebug),
	}}, nil
}

// run serves until ctx ends.
func (a *adminPort) run(ctx context.Context) error {
	return serveUntil(ctx, a.http, a.listener, "the admin endpoint")
}

// serveUntil serves until ctx ends, then cuts off the requests that still run: nobody
// waits for their answers.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener, what string) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", what, err)
	}
	return nil
}
