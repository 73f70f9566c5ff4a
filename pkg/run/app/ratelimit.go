package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// limiterWorkers answer requests to the engine in turn: with one goroutine per request,
// growing its stack took a sixth of the engine's CPU time when it was measured. More
// requests at the same time get goroutines of their own.
const limiterWorkers = 32

// limiter is the rate-limit engine inside this process. The local Envoy reaches it by a
// Unix socket.
type limiter struct {
	engine   *embedded.Engine
	grpc     *grpc.Server
	listener net.Listener
	path     string
}

// openLimiter makes the socket in a directory of this process. It returns nil if
// another engine counts.
func openLimiter(ctx context.Context, cfg config.Config, dir *standalone.RunDir, log *slog.Logger) (*limiter, error) {
	if cfg.RateLimitAddress != "" {
		return nil, nil
	}
	l := &limiter{
		engine: embedded.New(embedded.Options{Log: log}), grpc: grpc.NewServer(grpc.NumStreamWorkers(limiterWorkers)),
		path: dir.Join("ratelimit.sock"),
	}
	l.engine.Register(l.grpc)
	var err error
	if l.listener, err = (&net.ListenConfig{}).Listen(ctx, "unix", l.path); err != nil {
		l.grpc.Stop()
		return nil, fmt.Errorf("the rate-limit engine cannot listen on %s: %w", l.path, err)
	}
	return l, nil
}

// socket is where the engine listens; empty means that there is no engine here.
func (l *limiter) socket() string {
	if l == nil {
		return ""
	}
	return l.path
}

// publishLimits passes limits to the rate-limit engines: the one in this process, which
// keeps its counters, and those that receive them over xDS.
func publishLimits(l *limiter, ads *server.Server) func(int64, []*limits.Domain) error {
	return func(revision int64, domains []*limits.Domain) error {
		configs := ratelimit.Configs(domains)
		var err error
		if l != nil {
			err = l.engine.Load(configs)
		}
		return errors.Join(err, ads.PublishRateLimits(revision, configs))
	}
}

// limitsBy says who counts requests, for the log and the status: the address of
// an engine, "embedded" for the one in this process, or "none".
func limitsBy(cfg config.Config, l *limiter) string {
	switch {
	case cfg.RateLimitAddress != "":
		return cfg.RateLimitAddress
	case l != nil:
		return "embedded"
	}
	return "none"
}

// run serves until ctx ends.
func (l *limiter) run(ctx context.Context) error {
	if l == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, l.grpc.Stop)
	defer stop()
	if err := l.grpc.Serve(l.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving rate limits: %w", err)
	}
	return nil
}

// close stops the engine.
func (l *limiter) close() error {
	if l == nil {
		return nil
	}
	l.grpc.Stop()
	return ignoreClosed(l.listener.Close())
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
