package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "envoys:", err)
		os.Exit(1)
	}
}

func run() error {
	apiAddr := flag.String("api-addr", "", "HOST:PORT of the calls")
	xdsAddr := flag.String("xds-addr", "", "HOST:PORT of the control plane")
	node := flag.String("node", "", "node id of all streams")
	routes := flag.String("routes", "", "name of the route configuration")
	text := flag.String("text", "", "text that is expected first")
	n := flag.Int("streams", 1, "how many")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	f := &fleet{streams: *n}
	f.expect(*text)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *apiAddr)
	if err != nil {
		return fmt.Errorf("listening for calls: %w", err)
	}
	failed := make(chan error, *n+1)
	for range *n {
		conn, err := grpc.NewClient(*xdsAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow))
		if err != nil {
			return err
		}
		s := &stream{fleet: f, node: *node, routes: *routes}
		go func() { failed <- s.run(ctx, conn) }()
	}
	api := &http.Server{Handler: f.handler()}
	go func() { failed <- api.Serve(l) }()
	select {
	case <-ctx.Done():
		return api.Close()
	case err := <-failed:
		return err
	}
}

// Windows that are large enough for any response, as Envoy's are.
const streamWindow, connWindow = 16 << 20, 24 << 20
