package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/upstreams"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/telemetry"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/expiry"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/logins"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// apiDrain is how long API requests may still run when the program stops.
const apiDrain = 3 * time.Second

// controlPlane is the store, the build loop and the two servers.
type controlPlane struct {
	log   *slog.Logger
	store *sqlstore.Store
	loop  *pipeline.Loop
	// expiry reports certificates that expire.
	expiry *expiry.Watch
	// logins counts failed logins.
	logins *logins.Watch
	// kube keeps the store equal to what Kubernetes has; nil if the configuration does not come from there. mirror
	// is then the directory of the store.
	kube   *kube.Watch
	mirror *standalone.RunDir
	// providers keeps what is learned from identity providers.
	providers *providers.Watch
	api       *apiServer
	xds       *xdsPort
	grpc      *grpc.Server
	// certificates keeps the secrets of --tls-dir; nil if there is none.
	certificates *tlsdir.Dir
	// debug serves profiles; nil if no setting enables it.
	debug *debugServer
	// loaded is Env.Loaded.
	loaded func()
	// admin is the address of the admin port; empty if there is none.
	admin string
	// held says why no Envoy is answered; see server.Server.
	held func() string
	// limitsBy says who counts requests; see the function of this name.
	limitsBy string
	// replica is the name of this process for users and for other replicas.
	replica string
	// replicas receives the reports of the other replicas; nil if there can be none.
	replicas *replicas.Hub
	// tracer and pushed send spans and metrics to collectors; nil without one.
	tracer *telemetry.Tracer
	pushed *telemetry.Metrics
	// acme orders certificates; nil if the configuration comes from Kubernetes.
	acme *acme.Watch
	// told writes the conditions of objects into Kubernetes; nil if the configuration does not come from there.
	told *kubeStatus
}

// openControlPlane binds the addresses and opens the store. newProxy returns the defaults of a new proxy object; nil
// means those of the model. limits is the rate-limit engine in this process, nil without one, and own the Envoy that it
// starts.
func openControlPlane(
	ctx context.Context, cfg config.Config, env Env, newProxy func(string) *model.Proxy, limits *limiter, own ownEnvoy,
) (*controlPlane, error) {
	p := &controlPlane{log: env.Log, loaded: env.Loaded, limitsBy: limitsBy(cfg, limits)}
	opened := false
	defer func() {
		if !opened {
			p.close()
		}
	}()
	lost, err := p.open(ctx, cfg, own)
	if err != nil {
		return nil, err
	}

	settings, err := p.compileSettings(cfg, limits)
	if err != nil {
		return nil, err
	}
	registry := status.NewRegistry()
	source := newAnnouncer(p.store, registry, env.Log)
	ads := p.newServer(cfg, registry, own, lost, source.configured.Load)
	p.logins = &logins.Watch{
		Status: registry, Log: env.Log, Refresh: func(k model.Key) { p.providers.Refresh(k) }, Now: time.Now,
	}
	known := &knownLimits{}
	if err := p.watchCertificates(cfg, settings, source, registry); err != nil {
		return nil, err
	}
	if err := p.openKubernetes(ctx, cfg, p.expiry, registry); err != nil {
		return nil, err
	}
	if p.providers, err = p.watchProviders(cfg, settings, registry); err != nil {
		return nil, err
	}
	p.loop = pipeline.NewLoop(pipeline.Options{
		Source: p.providers, Publisher: ads, Status: registry, Log: env.Log,
		Settings: settings, RateLimits: known.recordingInto(publishLimits(limits, ads)),
	})
	access, err := p.accessOptions(ctx, cfg)
	if err != nil {
		return nil, err
	}
	access.Store, access.SchemaWord, access.Log, access.NewProxy, access.Ready = p.store, cfg.SchemaWord, env.Log,
		newProxy, p.ready
	if err := p.addChecks(ctx, cfg, registry, &access); err != nil {
		return nil, err
	}
	if err := p.addLogins(cfg, settings, own, &access); err != nil {
		return nil, err
	}
	p.readOnly(&access)
	wait := waiter{p.loop, p.providers, p.acme, ads, registry, cfg.RateLimitAddress != ""}
	if err := p.joinBoard(cfg, registry, ads, wait); err != nil {
		return nil, err
	}
	access.Wait = wait.everywhere(p.replicas)
	p.offerCertificates(&access)
	health := upstreams.New(ads, own.upstreams)
	access.Live = inspect.Sources{
		Status: registry, Snapshots: snapshots{ads}, Certificates: snapshots{ads}.certificates, Held: ads.Held,
		Replica: p.replica, Explain: explainer(ads, known, health, own), Drafts: drafter(p.loop, own), Upstreams: health.Upstreams,
		RateLimits: limitCounts(cfg, limits), LimitsBy: p.limitsBy, Logins: p.logins.Conditions,
	}
	p.showOthers(&access.Live)
	if err := p.observe(ctx, cfg, registry, ads, &access, env.Version); err != nil {
		return nil, err
	}
	p.api.answer(ctx, access, p.tracer)
	opened = true
	return p, nil
}

// addLogins adds the test of logins, and the sign-in of the console.
func (p *controlPlane) addLogins(cfg config.Config, settings compile.Settings, own ownEnvoy, access *rest.Options) (err error) {
	if access.LoginTest, err = p.loginTest(cfg, settings, own); err == nil {
		access.SignIn, err = p.signIn(cfg, settings)
	}
	return err
}

// newServer makes the xDS server. lost says why the database seems to be lost. configured reports whether it ever
// had a configuration.
func (p *controlPlane) newServer(
	cfg config.Config, registry *status.Registry, own ownEnvoy, lost string, configured func() bool,
) *server.Server {
	ads := server.New(server.Options{
		Elsewhere: p.hasElsewhere,
		Plan:      plan.Options{WarmBound: cfg.ClusterWait, Grace: cfg.RemovalGrace},
		Status:    registry, Log: p.log, Own: own.proxy, Failing: own.upstreams.Failing,
		Held: lost, AllowEmpty: cfg.AllowEmpty || p.mirror != nil, Configured: configured,
		Authenticate: p.xds.auth.Authenticate, Refusals: p.xds.refusals,
	})
	p.held, p.grpc = ads.Held, p.xds.server(ads)
	return ads
}

// compileSettings are the settings of the process that shape every proxy.
func (p *controlPlane) compileSettings(cfg config.Config, limits *limiter) (compile.Settings, error) {
	authorities, err := readAuthorities(cfg.UpstreamCAFile, os.Getenv, authorityFiles())
	if err != nil {
		return compile.Settings{}, err
	}
	foreign, err := p.foreignRules(cfg)
	return compile.Settings{
		AccessLog: cfg.AccessLog == "json", RateLimitSocket: limits.socket(), RateLimitAddress: cfg.RateLimitAddress,
		Upstreams: upstreamLists(cfg), Foreign: foreign, Open: p.store.Unseal, Authorities: authorities, Lua: cfg.AllowLua,
	}, err
}

// open binds the addresses and opens the store. lost says why the database seems to be lost.
func (p *controlPlane) open(ctx context.Context, cfg config.Config, own ownEnvoy) (lost string, err error) {
	if p.api, err = listenAPI(ctx, cfg, p.log); err != nil {
		return "", err
	}
	p.xds = &xdsPort{}
	if p.xds.listener, err = listen(ctx, cfg.XDSAddr, "xds-addr", "xDS server"); err != nil {
		return "", err
	}
	if cfg.DebugAddr != "" {
		if p.debug, err = openDebug(ctx, cfg, p.log); err != nil {
			return "", err
		}
	}
	if cfg.Mode == config.ModeKubernetes {
		p.store, p.mirror, err = openMirror(ctx, cfg, p.log)
	} else {
		p.store, lost, err = awaitStore(ctx, cfg, p.api, p.log)
	}
	if err != nil {
		return "", err
	}
	return lost, p.xds.open(ctx, cfg, p.store, own, p.log)
}

// accessOptions returns the options for access to the API.
func (p *controlPlane) accessOptions(ctx context.Context, cfg config.Config) (rest.Options, error) {
	mayOpen, err := checkAccess(ctx, cfg, p.api.listener.Addr(), p.store, p.log)
	return rest.Options{
		Tokens: p.store, Sessions: p.store, AdminToken: cfg.APIAdminToken, OpenWithoutTokens: mayOpen, Hosts: cfg.APIHosts,
		ProxyTokens: p.store, ProxyTokensChanged: p.xds.tokens.Changed,
	}, err
}

// run serves until ctx ends or a part fails.
func (p *controlPlane) run(ctx context.Context) error {
	defer p.close()
	group, ctx := errgroup.WithContext(ctx)
	if p.told != nil {
		p.told.run(ctx, group)
	}
	if p.replicas != nil {
		p.replicas.Join(ctx) // before the first Envoy is answered
		// After the last stream of an Envoy has ended.
		defer p.leaveBoard(ctx)
	}
	group.Go(func() error { return p.store.Run(ctx) })
	group.Go(func() error { return p.loop.Run(ctx) })
	group.Go(func() error { return p.expiry.Run(ctx) })
	if p.acme != nil {
		group.Go(func() error { return p.acme.Run(ctx) })
	}
	group.Go(func() error { return p.providers.Run(ctx) })
	if p.kube != nil {
		group.Go(func() error { return p.kube.Run(ctx) })
	}
	group.Go(func() error { return p.awaitLoaded(ctx) })
	group.Go(p.api.run)
	if p.replicas != nil {
		group.Go(func() error { return p.replicas.Run(ctx) })
	}
	if p.certificates != nil {
		group.Go(func() error { return p.certificates.Run(ctx) })
	}
	p.xds.run(ctx, group, p.grpc)
	if p.debug != nil {
		group.Go(func() error { return p.debug.run(ctx) })
	}
	group.Go(func() error {
		<-ctx.Done()
		p.log.Info("stopping")
		// The streams of Envoys end last: they never end by themselves.
		defer p.grpc.Stop()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiDrain)
		defer cancel()
		if err := p.api.Shutdown(drain); err != nil {
			p.log.Warn("requests to the api were cut off", "err", err)
			return p.api.Close()
		}
		return nil
	})
	where := []any{"api", p.api.url(p.api.listener.Addr().String()), "xds", p.xds.listener.Addr().String()}
	if p.admin != "" {
		where = append(where, "admin", p.admin)
	}
	if p.debug != nil {
		where = append(where, "debug", p.debug.url())
	}
	p.log.Info("gatehouse is up", append(where, "rate_limits", p.limitsBy)...)
	return group.Wait()
}

// awaitLoaded calls loaded when the first configuration is published.
func (p *controlPlane) awaitLoaded(ctx context.Context) error {
	select {
	case <-p.loop.Ready():
		if p.loaded != nil {
			p.loaded()
		}
	case <-ctx.Done():
	}
	return nil
}

// ready says why the control plane cannot serve yet.
func (p *controlPlane) ready() error {
	select {
	case <-p.loop.Ready():
		if why := p.held(); why != "" {
			return errors.New("Envoys are held: " + why)
		}
		return nil
	default:
	}
	if p.kube != nil && p.kube.Waiting() != "" {
		return errors.New("waiting for the kube-apiserver: " + p.kube.Waiting())
	}
	return errors.New("the configuration is not loaded yet")
}

// close releases what was opened. It may close again what Serve has closed.
func (p *controlPlane) close() {
	p.api.close()
	p.xds.close()
	var sent sync.WaitGroup // a collector that hangs delays the end once
	sent.Go(p.tracer.Close)
	sent.Go(p.pushed.Close)
	sent.Wait()
	if p.debug != nil {
		_ = p.debug.listener.Close()
	}
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			p.log.Warn("closing the database", "err", err)
		}
	}
	if p.mirror != nil {
		if err := p.mirror.Close(); err != nil {
			p.log.Warn("removing the copy of the configuration", "err", err)
		}
	}
}

// listen binds an address. flag is the setting that has it.
func listen(ctx context.Context, addr, flag, what string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the %s cannot listen on %s: %w: stop what uses the address, or choose another with --%s",
			what, addr, err, flag)
	}
	return l, nil
}
