package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/board"
	kubestatus "github.com/gatehouse-gateway/gatehouse/pkg/input/kube/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// kubeStatus publishes this replica's report in a ConfigMap, and writes conditions while this replica holds the
// Lease.
type kubeStatus struct {
	board         *board.Board
	report        func() replicas.Report
	looker        *kubestatus.Looker
	writer        *kubestatus.Writer
	installations *kubestatus.Installations
	election      kubestatus.Election
	faults        *writeFaults
}

// openKubeStatus sends no request yet. report is that of this replica, without what Kubernetes said.
func (p *controlPlane) openKubeStatus(
	cfg config.Config, registry *status.Registry, report func() replicas.Report,
) (*kubeStatus, error) {
	where, err := kube.Config(cfg.Kubernetes.Config)
	if err != nil {
		return nil, err
	}
	namespace, err := homeNamespace(cfg.Kubernetes.Config)
	if err != nil {
		return nil, err
	}
	installation := installationLabel(cfg.Kubernetes.Proxies[0])
	lease := "gatehouse-status-" + installation
	k := &kubeStatus{faults: &writeFaults{registry: registry, log: p.log, by: map[string]string{}}}
	k.board, err = board.New(board.Options{
		Config: where, Namespace: namespace, Installation: installation, Replica: p.replica,
		Service: cfg.Kubernetes.XDSService, Pod: os.Getenv("POD_NAME"), PodUID: os.Getenv("POD_UID"),
	})
	if err != nil {
		return nil, err
	}
	k.report = func() replicas.Report {
		r := report().WithSeen(p.kube.Seen)
		r.Replica = p.replica
		return r
	}
	k.installations, err = kubestatus.NewInstallations(where, namespace, lease, k.faults.share)
	if err != nil {
		return nil, err
	}
	k.looker = kubestatus.NewLooker(kubestatus.Sources{
		Proxies: cfg.Kubernetes.Proxies,
		Objects: func(ctx context.Context) ([]kubestatus.Cached, error) {
			return cachedObjects(ctx, p.kube, gatewayController(cfg))
		},
		Became: p.kube.Objects, Report: k.report, Registry: registry, Log: p.log,
		Installations: k.installations,
		Others:        func() []replicas.Other { return p.replicas.Others() },
		Moved:         func() <-chan struct{} { return p.replicas.Moved() }, Heard: k.board.Synced,
	})
	p.kube.OnChange(k.looker.Tell)
	k.writer, err = kubestatus.New(kubestatus.Options{
		Config: where, Controller: namespace + "/" + lease, Look: k.looker.Look, Changed: k.looker.Changed(),
		Fault: k.faults.set, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	k.election = kubestatus.Election{
		Config: where, Namespace: namespace, Name: lease, Identity: p.replica, Log: p.log,
		Fault: func(message string) { k.faults.set("Lease", message) },
	}
	return k, nil
}

// run starts the parts that run until ctx ends. The board comes first: the hub reads it.
func (k *kubeStatus) run(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return k.board.Run(ctx) })
	group.Go(func() error { return k.looker.Run(ctx) })
	group.Go(func() error {
		return k.election.Lead(ctx, func(leading context.Context) {
			var both sync.WaitGroup
			both.Go(func() { k.installations.Run(leading) })
			k.writer.Run(leading)
			both.Wait()
		})
	})
}

// homeNamespace returns the namespace of the Lease and of the replicas' ConfigMaps: that of the Pod, otherwise that of
// the kubeconfig file.
func homeNamespace(kubeconfig string) (string, error) {
	if own := os.Getenv("POD_NAMESPACE"); own != "" {
		return own, nil
	}
	if kubeconfig == "" {
		own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		if err != nil {
			return "", fmt.Errorf("finding the namespace of this Pod: %w; set POD_NAMESPACE", err)
		}
		return strings.TrimSpace(string(own)), nil
	}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, nil,
	)
	namespace, _, err := file.Namespace()
	if err != nil {
		return "", fmt.Errorf("--kubeconfig: reading %s: %w", kubeconfig, err)
	}
	return namespace, nil
}

// installationLabel turns the name of a proxy into one that a label and a Lease may have.
func installationLabel(proxy string) string {
	if regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`).MatchString(proxy) {
		return proxy
	}
	sum := sha256.Sum256([]byte(proxy))
	return "proxy-" + hex.EncodeToString(sum[:8])
}

// listTime bounds a read of the cache, which waits until a kind has been read for the first time.
const listTime = time.Second

// cachedObjects lists the objects that have conditions, of the kinds that can be read.
func cachedObjects(ctx context.Context, watch *kube.Watch, controller string) (objects []kubestatus.Cached, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	add := func(kind string, o client.Object, s gatewayv1.Status) {
		objects = append(objects, kubestatus.Cached{
			Object: kubestatus.Object{
				Ref: kubestatus.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, UID: o.GetUID(),
				ResourceVersion: kubestatus.ParseVersion(o.GetResourceVersion()), Status: s,
			},
			Generation: o.GetGeneration(),
		})
	}
	if watch.HasRead(gatewayv1.KindGatewayHost) {
		var list gatewayv1.GatewayHostList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		objects = slices.Grow(objects, len(list.Items))
		for i := range list.Items {
			add(gatewayv1.KindGatewayHost, &list.Items[i], list.Items[i].Status)
		}
	}
	if watch.HasRead(gatewayv1.KindRouteFilter) {
		var list gatewayv1.RouteFilterList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			add(gatewayv1.KindRouteFilter, &list.Items[i], list.Items[i].Status)
		}
	}
	if watch.HasRead(gatewayv1.KindGlobalConfig) {
		var list gatewayv1.GlobalConfigList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			add(gatewayv1.KindGlobalConfig, &list.Items[i], list.Items[i].Status)
		}
	}
	if watch.HasRead(gatewayv1.KindConsumer) {
		var list gatewayv1.ConsumerList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			add(gatewayv1.KindConsumer, &list.Items[i], list.Items[i].Status)
		}
	}
	more, err := cachedAPIObjects(ctx, watch, controller)
	return append(objects, more...), err
}

// writeFaults reports which conditions cannot be written, and why.
type writeFaults struct {
	registry *status.Registry
	log      *slog.Logger

	mu     sync.Mutex
	by     map[string]string
	shared string
}

// share reports which other installations serve the objects of this one; empty if none does.
func (f *writeFaults) share(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shared == message {
		return
	}
	f.shared = message
	if message == "" {
		f.log.Info("this replica reports no other installation any more")
		f.registry.SetConditions("kubernetes installations", nil)
		return
	}
	f.log.Warn("another installation serves the objects of this one", "reason", message)
	f.registry.SetConditions("kubernetes installations", []model.Condition{
		{Key: model.NewKey(kube.Actor, "Lease"), Code: model.KubernetesShared, Message: message},
	})
}

func (f *writeFaults) set(what, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[what] == message {
		return
	}
	if message == "" {
		delete(f.by, what)
		f.log.Info("conditions are written again", "kind", what)
	} else {
		f.by[what] = message
		f.log.Warn("conditions are not written", "kind", what, "reason", message)
	}
	var list []model.Condition
	for what, message := range f.by {
		list = append(list, model.Condition{
			Key: model.NewKey(kube.Actor, what), Code: model.KubernetesUnwritable, Message: message,
		})
	}
	f.registry.SetConditions("kubernetes status", list)
}
