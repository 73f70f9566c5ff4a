package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/envoy"
)

// adminPort answers the paths of an admin port for an Envoy whose own admin endpoint is
// a Unix socket; this process uses that socket to drain the Envoy.
type adminPort struct {
	server *http.Server
	served chan error
}

func openAdmin(ctx context.Context, addr, socket string, log *slog.Logger) (*adminPort, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		if sys, ok := errors.AsType[*os.SyscallError](err); ok {
			err = sys.Err
		}
		return nil, fmt.Errorf("--admin-addr: listening on %s: %w: choose another address, or none with --admin-addr \"\"",
			addr, err)
	}
	a := &adminPort{served: make(chan error, 1), server: &http.Server{
		Handler: adminHandler(socket), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	go func() { a.served <- a.server.Serve(l) }()
	log.Info("the admin port is open", "admin", l.Addr().String())
	return a, nil
}

// close closes the port and its requests.
func (a *adminPort) close() error {
	err := a.server.Close()
	if served := <-a.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serving the admin port: %w", served))
	}
	return err
}

// adminHandler passes requests for the allowed paths on to Envoy.
func adminHandler(socket string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = &url.URL{Scheme: "http", Host: "envoy", Path: r.In.URL.Path, RawQuery: r.In.URL.RawQuery}
			r.Out.Host = "envoy"
		},
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			},
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "Envoy does not answer", http.StatusServiceUnavailable)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, found := strings.CutPrefix(r.URL.Path, "/"); !found || !slices.Contains(envoy.AdminPaths(), name) {
			http.Error(w, "this path is not allowed here: an admin socket (--admin-socket) has all of them",
				http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}
