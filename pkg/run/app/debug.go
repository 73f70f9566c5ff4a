package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// debugPath is where go tool pprof expects the profiles.
const debugPath = "/debug/pprof/"

// debugServer serves profiles of the program to this machine, without a token.
type debugServer struct {
	listener net.Listener
	http     *http.Server
}

func openDebug(ctx context.Context, cfg config.Config, log *slog.Logger) (*debugServer, error) {
	l, err := listen(ctx, cfg.DebugAddr, "debug-addr", "debug server")
	if err != nil {
		return nil, err
	}
	return &debugServer{listener: l, http: &http.Server{
		Handler:           debugHandler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// debugHandler returns the handlers of net/http/pprof. That package also adds them to
// http.DefaultServeMux, which nothing here serves. Its cmdline handler is left out: the
// command line may contain the password of the database.
func debugHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(debugPath, pprof.Index) // and heap, allocs, goroutine, ...
	mux.HandleFunc(debugPath+"profile", pprof.Profile)
	mux.HandleFunc(debugPath+"symbol", pprof.Symbol)
	mux.HandleFunc(debugPath+"trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isFromPage(r) {
			http.Error(w, "this server answers tools such as go tool pprof at a loopback address or localhost, "+
				"and no other web pages", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isFromPage reports whether a request comes from a web page in a browser on this
// machine. Either the page's host name resolves to this machine (DNS rebinding), and
// the Host is that name. Or the browser says that another site sends the request.
func isFromPage(r *http.Request) bool {
	host := (&url.URL{Host: r.Host}).Hostname()
	addr, err := netip.ParseAddr(host)
	local := host == "localhost" || err == nil && addr.IsLoopback()
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return !local
	}
	return true
}

// url is the address of the profiles.
func (d *debugServer) url() string { return "http://" + d.listener.Addr().String() + debugPath }

// run serves until ctx ends.
func (d *debugServer) run(ctx context.Context) error {
	return serveUntil(ctx, d.http, d.listener, "profiles")
}
