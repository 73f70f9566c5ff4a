package app

import (
	"context"
	"net"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// Standalone runs the control plane and an Envoy until ctx ends.
func Standalone(ctx context.Context, cfg config.Config, env Env) error {
	path, err := standalone.FindEnvoy(cfg.Envoy)
	if err != nil {
		return err
	}
	plane, err := openControlPlane(ctx, cfg, env, func(name string) *model.Proxy { return newProxy(cfg, name) })
	if err != nil {
		return err
	}
	if err := adoptSettings(ctx, plane.store, cfg); err != nil {
		plane.close()
		return err
	}
	bootstrap, err := envoy.Bootstrap(envoy.Params{Node: cfg.Proxy, XDSAddr: plane.xds.Addr().String(), AdminAddr: cfg.AdminAddr})
	if err != nil {
		plane.close()
		return err
	}
	child := standalone.NewEnvoy(standalone.EnvoyOptions{
		Path: path, Bootstrap: bootstrap, Stdout: env.Stdout, Log: env.Log, Ports: ports(cfg),
	})

	// The control plane outlives the Envoy, which drains first.
	planeCtx, stopPlane := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPlane()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return plane.run(planeCtx) })
	group.Go(func() error {
		defer stopPlane()
		return child.Run(ctx)
	})
	if cfg.Demo {
		group.Go(func() error {
			select {
			case <-child.Ready():
				return demo(cfg, plane, env).Run(ctx)
			case <-ctx.Done():
				return nil
			}
		})
	}
	return group.Wait()
}

func demo(cfg config.Config, plane *controlPlane, env Env) standalone.Demo {
	api := plane.api.Addr().(*net.TCPAddr)
	return standalone.Demo{
		API:     "http://" + net.JoinHostPort(reachable(api.IP.String()), strconv.Itoa(api.Port)),
		Gateway: "http://" + net.JoinHostPort(reachable(cfg.ListenIP), strconv.Itoa(cfg.HTTPPort)),
		Proxy:   cfg.Proxy, Out: env.Stdout,
	}
}

// newProxy returns the defaults of a new proxy object: the gateway's own gets
// those of the flags (rest-api.md, "proxy").
func newProxy(cfg config.Config, name string) *model.Proxy {
	p := model.NewProxy()
	if name == cfg.Proxy {
		p.HTTPPort, p.HTTPSPort, p.ListenIP = cfg.HTTPPort, cfg.HTTPSPort, cfg.ListenIP
	}
	return p
}

// adoptSettings writes listener settings that were given explicitly to the
// gateway's own proxy object, so that the API shows what is true.
func adoptSettings(ctx context.Context, s store.Store, cfg config.Config) error {
	_, err := s.Write(ctx, store.Origin{Actor: "standalone", Request: "listener settings"}, func(w store.Writer) error {
		stored, err := store.Get[*model.Proxy](w, model.ProxyKey(cfg.Proxy))
		if model.IsKind(err, model.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		own := *stored
		if cfg.Explicit["http-port"] {
			own.HTTPPort = cfg.HTTPPort
		}
		if cfg.Explicit["https-port"] {
			own.HTTPSPort = cfg.HTTPSPort
		}
		if cfg.Explicit["listen-ip"] {
			own.ListenIP = cfg.ListenIP
		}
		if own == *stored {
			return nil
		}
		return w.Replace(&own)
	})
	return err
}

// ports are the addresses that Envoy is going to listen on.
func ports(cfg config.Config) []standalone.Port {
	return []standalone.Port{
		{Addr: cfg.AdminAddr, Flag: "admin-addr"},
		{Addr: net.JoinHostPort(cfg.ListenIP, strconv.Itoa(cfg.HTTPPort)), Flag: "http-port"},
	}
}

// reachable is an address of this machine that a listener on ip answers.
func reachable(ip string) string {
	switch ip {
	case "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return ip
}
