package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run() error {
	apiAddr := flag.String("api-addr", "", "HOST:PORT of the calls")
	xdsAddr := flag.String("xds-addr", "", "HOST:PORT of the xDS server")
	httpPort := flag.Int("http-port", 0, "port of the Envoy's listener")
	accessLog := flag.Bool("access-log", true, "write an access log")
	routes := flag.String("routes", "", "JSON file with the routes to start with")
	hand := flag.Bool("by-hand", false, "messages as a person would write them, not Gatehouse's")
	coalesce := flag.Bool("coalesce", false, "one SetSnapshot for all changes that come while one runs")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listen := ir.Listener{Address: layout.Address, Port: *httpPort, AccessLog: *accessLog}
	var messages form = asGatehouse{}
	if *hand {
		messages = byHand{}
	}
	world, err := newWorld(messages, listen, *routes)
	if err != nil {
		return err
	}
	f := &floor{world: world, cache: cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil)}
	if err := f.publish(ctx); err != nil {
		return err
	}
	api := &http.Server{Handler: f.handler()}
	if *coalesce {
		f.changed = make(chan struct{}, 1)
		go f.publishChanges(ctx)
	}
	return serve(ctx, f, api, *apiAddr, *xdsAddr)
}

// serve answers until ctx ends.
func serve(ctx context.Context, f *floor, api *http.Server, apiAddr, xdsAddr string) error {
	var lc net.ListenConfig
	xds, err := lc.Listen(ctx, "tcp", xdsAddr)
	if err != nil {
		return fmt.Errorf("listening for Envoys: %w", err)
	}
	calls, err := lc.Listen(ctx, "tcp", apiAddr)
	if err != nil {
		return fmt.Errorf("listening for calls: %w", err)
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.MaxConcurrentStreams(1000))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, serverv3.NewServer(ctx, f.cache, nil))
	failed := make(chan error, 2)
	go func() { failed <- g.Serve(xds) }()
	go func() { failed <- api.Serve(calls) }()
	defer g.Stop()
	select {
	case <-ctx.Done():
		return api.Close()
	case err := <-failed:
		return err
	}
}

// handler handles the calls. Each reads a layout.Route as JSON, PUT /routes a list.
func (f *floor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /route", change(f, f.world.addRoute))
	mux.HandleFunc("POST /upstream", change(f, f.world.attach))
	mux.HandleFunc("POST /both", change(f, f.world.add))
	mux.HandleFunc("DELETE /route", change(f, f.world.remove))
	mux.HandleFunc("PUT /routes", change(f, f.world.replace))
	return mux
}

// change answers when apply has changed the memory, and only then starts to publish.
func change[T any](f *floor, apply func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		var body T
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := apply(body); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusCreated)
		// The answer is on its way; it need not have been read.
		_ = http.NewResponseController(w).Flush()
		f.publishOrSignal(req.Context())
	}
}
