package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/upstreams"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/geoip"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// ownEnvoy is the Envoy that this process starts. The zero value is none.
type ownEnvoy struct {
	// proxy is the name of its proxy, and xdsSocket where it connects if the xDS port requires authentication.
	proxy, xdsSocket string
	// upstreams shows why its upstreams fail; nil if there is no Envoy.
	upstreams *upstreams.OwnEnvoy
	// where returns what its databases say of an address; nil if there are none.
	where func(netip.Addr) (country, network string)
}

// Standalone runs the control plane and an Envoy until ctx ends.
func Standalone(ctx context.Context, cfg config.Config, env Env) (err error) {
	path, err := standalone.FindEnvoy(cfg.Envoy)
	if err != nil {
		return err
	}
	children := &standalone.Children{}
	defer env.reapOrphans(children)()
	release, err := claim(ctx, cfg, "gatehouse standalone")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	dir, err := standalone.OpenRunDir(env.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	limits, err := openLimiter(ctx, cfg, dir, env.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limits.close()) }()
	adminSocket := dir.Join(standalone.AdminSocket)
	envoyAdmin := standalone.NewAdmin(adminSocket)
	databases := geoip.Open(dir.Join(""), geoip.Files{Country: cfg.GeoIPCountry, ASN: cfg.GeoIPASN}, env.Log)
	logDir := standalone.LogDir(cfg.AccessLogDir, env.Log)
	running := ownEnvoy{cfg.Proxy, dir.Join("xds.sock"), upstreams.NewOwnEnvoy(envoyAdmin.Get), databases.Where}
	plane, err := openControlPlane(ctx, cfg, env, func(name string) *model.Proxy { return newProxy(cfg, name) }, limits,
		running)
	if err != nil {
		return err
	}
	own, err := adoptSettings(ctx, plane.store, cfg, env.Log)
	if err != nil {
		plane.close()
		return err
	}
	bootstrap, err := envoy.Bootstrap(plane.xds.params(ownParams(cfg, running, adminSocket, logDir, databases.Copies())))
	if err != nil {
		plane.close()
		return err
	}
	child := standalone.NewEnvoy(standalone.EnvoyOptions{
		Path: path, Bootstrap: bootstrap, AdminSocket: adminSocket, Dir: dir,
		Stdout: accessLog(env), Log: env.Log, Told: plane.logins.HandleLine, Children: children,
		Ports: []standalone.Port{{Addr: (&net.TCPAddr{IP: net.ParseIP(own.ListenIP), Port: own.HTTPPort}).String(), Flag: "http-port"}},
	})
	admin, err := openAdmin(ctx, cfg, plane, rest.AdminOptions{Ask: envoyAdmin.Ask, Socket: adminSocket})
	if err != nil {
		plane.close()
		return err
	}
	plane.admin = admin.listener.Addr().String()
	// The control plane outlives the Envoy, which drains first.
	planeCtx, stopPlane := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPlane()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return plane.run(planeCtx) })
	group.Go(func() error { return limits.run(planeCtx) })
	group.Go(func() error { return admin.run(planeCtx) })
	group.Go(func() error {
		databases.Run(planeCtx)
		return nil
	})
	group.Go(func() error {
		defer stopPlane()
		return child.Run(ctx)
	})
	if cfg.Demo {
		group.Go(func() error { return runDemo(planeCtx, cfg, env, plane, own, child) })
	}
	return group.Wait()
}

// ownParams are for the bootstrap of the program's own Envoy.
func ownParams(cfg config.Config, running ownEnvoy, adminSocket, logDir string, copies geoip.Files) envoy.Params {
	return envoy.Params{
		Node: cfg.Proxy, AdminSocket: adminSocket, Parent: running.upstreams.Parent, Zone: cfg.Zone,
		CountryDatabase: copies.Country, ASNDatabase: copies.ASN, LogDir: logDir,
	}
}

func accessLog(env Env) io.Writer {
	if env.AccessLog == nil {
		return env.Stdout
	}
	return env.AccessLog
}

// runDemo shows a first service, or says why it cannot.
func runDemo(
	ctx context.Context, cfg config.Config, env Env, plane *controlPlane, own *model.Proxy, child *standalone.Envoy,
) error {
	reason, err := demoObstacle(ctx, cfg, plane.store)
	if held := plane.held(); held != "" && reason == "" {
		reason = held + "." // the demo waits for an Envoy
	}
	if err != nil || reason != "" {
		if err == nil {
			_, err = fmt.Fprintln(env.Stdout, "The demo is left out: "+reason)
		}
		return err
	}
	at := func(port int) string { return reachableAddr(&net.TCPAddr{IP: net.ParseIP(own.ListenIP), Port: port}) }
	demo := standalone.Demo{
		API: plane.api.url(reachableAddr(plane.api.listener.Addr())), Gateway: "http://" + at(own.HTTPPort),
		HTTPS: "https://" + at(own.HTTPSPort), Token: cfg.APIAdminToken, TokenText: "$GATEHOUSE_API_ADMIN_TOKEN",
		Proxy: cfg.Proxy, Ready: child.Ready(), Out: env.Stdout,
		Program: env.Program, LogFile: env.LogFile,
	}
	if cfg.APIAdminTokenFile != "" {
		demo.TokenText = "$(cat " + cfg.APIAdminTokenFile + ")"
	}
	return demo.Run(ctx)
}

// demoObstacle says why the demo cannot call the API; empty means that it can.
func demoObstacle(ctx context.Context, cfg config.Config, tokens store.Tokens) (string, error) {
	if cfg.APITLSCert != "" {
		return "its calls are plain HTTP, and the API has a certificate (--api-tls-cert).", nil
	}
	if cfg.APIAdminToken != "" {
		return "", nil
	}
	some, err := tokens.HasTokens(ctx)
	if some {
		return "the API needs a token, which it knows only with --api-admin-token-file or GATEHOUSE_API_ADMIN_TOKEN.", err
	}
	return "", err
}

// reachableAddr returns an address of this machine at which a listener answers: the
// loopback address for a listener on all addresses.
func reachableAddr(listener net.Addr) string {
	addr := *listener.(*net.TCPAddr)
	switch {
	case addr.IP.Equal(net.IPv4zero):
		addr.IP = net.IPv4(127, 0, 0, 1)
	case addr.IP.IsUnspecified():
		addr.IP = net.IPv6loopback
	}
	return addr.String()
}
