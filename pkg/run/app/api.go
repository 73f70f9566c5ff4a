package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/telemetry"
)

// apiServer serves the REST API. If the database is late, it serves what rest.Starting answers until then.
type apiServer struct {
	*http.Server
	listener net.Listener
	// https reports whether it has a certificate. (net/http itself sets the TLSConfig of any server.)
	https bool
	// handler answers now.
	handler atomic.Pointer[http.Handler]
	// early serves the API before run does; nil once it must not start anymore.
	early *time.Timer
	// served is how serving ended, if it began early.
	served chan error
}

// listenAPI binds the address and reads the certificate of the API.
func listenAPI(ctx context.Context, cfg config.Config, log *slog.Logger) (*apiServer, error) {
	l, err := listen(ctx, cfg.APIAddr, "api-addr", "REST API")
	if err != nil {
		return nil, err
	}
	a := &apiServer{listener: l, served: make(chan error, 1)}
	a.Server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(*a.handler.Load()).ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if cfg.APITLSCert != "" {
		pair, err := loadCertificate(cfg.APITLSCert, cfg.APITLSKey, log)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		a.https, a.TLSConfig = true, &tls.Config{GetCertificate: pair.get, MinVersion: tls.VersionTLS12}
	}
	return a, nil
}

// answer makes the API answer, and ends its streams when the server stops.
func (a *apiServer) answer(ctx context.Context, access rest.Options, traced *telemetry.Tracer) {
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	access.OnStop = func(f func()) func() bool { return context.AfterFunc(stopping, f) }
	// Shutdown waits for requests to end, and a stream of events never ends by itself.
	a.RegisterOnShutdown(stop)
	h := traced.Handler(rest.New(access))
	a.handler.Store(&h)
}

// answerStarting serves the API if it is not served by run within a moment. why says what the program waits for.
func (a *apiServer) answerStarting(after time.Duration, log *slog.Logger, why func() error) {
	h := rest.Starting(log, why)
	a.handler.Store(&h)
	a.early = time.AfterFunc(after, func() { a.served <- a.serve() })
}

// run serves until the server is stopped.
func (a *apiServer) run() error {
	if a.early == nil || a.early.Stop() {
		return a.serve()
	}
	return <-a.served
}

// serve serves, with TLS if there is a certificate.
func (a *apiServer) serve() error {
	serve := a.Serve
	if a.https {
		serve = func(l net.Listener) error { return a.ServeTLS(l, "", "") }
	}
	if err := serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the REST API: %w", err)
	}
	return nil
}

// close may be called after run, and for one that never ran.
func (a *apiServer) close() {
	if a == nil {
		return
	}
	_ = a.listener.Close()
	_ = a.Close() // whoever was answered while the program waited
}

// url returns the URL of the API at an address of its listener.
func (a *apiServer) url(addr string) string {
	if a.https {
		return "https://" + addr
	}
	return "http://" + addr
}
