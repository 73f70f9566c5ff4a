package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// mirrorEntries bounds the change log of the mirror, which ends with the process.
const mirrorEntries = 10_000

// openMirror opens the private database of a process whose configuration comes from Kubernetes (ADR 0065). It is
// empty, and its key is in memory. dir is removed when the process stops, or at the next start if it was killed.
func openMirror(
	ctx context.Context, cfg config.Config, log *slog.Logger,
) (opened *sqlstore.Store, dir *standalone.RunDir, err error) {
	sealer, err := seal.NewMemory()
	if err != nil {
		return nil, nil, err
	}
	if dir, err = standalone.OpenRunDir(log); err != nil {
		return nil, nil, err
	}
	place := dir.Join("mirror") // of its own: both the RunDir and the store lock their directory
	if err := os.Mkdir(place, 0o700); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making a directory for the copy of the configuration: %w", err), dir.Close())
	}
	entries := mirrorEntries
	if cfg.Explicit["revision-keep-entries"] {
		entries = cfg.RevisionKeepEntries
	}
	opened, err = sqlstore.Open(ctx, sqlstore.Options{
		URL: (&url.URL{Scheme: "sqlite", Path: filepath.Join(place, "mirror.db")}).String(), Log: log, Sealer: sealer,
		KeepAge: cfg.RevisionKeepAge, KeepEntries: entries,
	})
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return opened, dir, nil
}

// openKubernetes makes the watch that keeps the mirror equal to what Kubernetes has, if the configuration comes from
// there. source is the mirror, as the build loop sees it.
func (p *controlPlane) openKubernetes(
	ctx context.Context, cfg config.Config, source store.Source, registry *status.Registry,
) error {
	if cfg.Mode != config.ModeKubernetes {
		return nil
	}
	klog.SetSlogLogger(p.log) // the libraries of Kubernetes share one log per process, and controller-runtime has another
	ctrllog.SetLogger(logr.FromSlogHandler(p.log.Handler()))
	where, err := kube.Config(cfg.Kubernetes.Config)
	if err != nil {
		return err
	}
	p.kube, err = kube.New(ctx, kube.Options{
		Config: where, Namespaces: cfg.Kubernetes.Namespaces, HostNames: cfg.Kubernetes.HostNames,
		Proxies: cfg.Kubernetes.Proxies, ProxySettings: cfg.Kubernetes.ProxySettings, ClusterDomain: clusterDomain(),
		Controller: gatewayController(cfg),
		Store:      p.store, Source: source, Status: registry, Log: p.log,
	})
	return err
}

// gatewayController returns the controllerName of the GatewayClasses of this installation.
func gatewayController(cfg config.Config) string {
	return "gateway.gatehouse.dev/" + installationLabel(cfg.Kubernetes.Proxies[0])
}

// readOnly makes the API refuse writes if the configuration comes from Kubernetes.
func (p *controlPlane) readOnly(access *rest.Options) {
	if p.kube != nil {
		access.Elsewhere, access.Degraded = p.kube.Elsewhere, p.kube.Degraded
	}
}
