package app

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// leaveTime bounds how long the program waits for its good-bye to the other replicas.
const leaveTime = 2 * time.Second

// joinBoard makes the hub that reports this replica to the others. Without a board
// there are no others.
func (p *controlPlane) joinBoard(cfg config.Config, registry *status.Registry, ads *server.Server, wait waiter) error {
	p.replica = replicaName(p.api.listener)
	board := p.store.Board()
	if p.kube == nil && board == nil {
		return nil
	}
	// A replica that is restarted in the same place is a new one: its Envoys are
	// others.
	p.replica += "-" + strings.ToLower(rand.Text()[:5])
	report := func() replicas.Report {
		r := replicas.Observe(registry, p.loop.Published(), snapshots{ads}.Wanted)
		r.Held = ads.Held()
		return r.WithConditions(p.logins.Conditions())
	}
	if p.kube != nil {
		var err error
		if p.told, err = p.openKubeStatus(cfg, registry, report); err != nil {
			return err
		}
		board, report = p.told.board, p.told.report
	}
	p.replicas = replicas.New(replicas.Options{
		Replica: p.replica, Board: board, Registry: registry, Wait: wait.answer, Log: p.log, Report: report,
	})
	return nil
}

// hasElsewhere is server.Options.Elsewhere.
func (p *controlPlane) hasElsewhere(proxy string) (has bool, moved <-chan struct{}) {
	if p.replicas == nil {
		return false, nil
	}
	return p.replicas.Has(proxy)
}

// showOthers has the API show the Envoys of the other replicas, too.
func (p *controlPlane) showOthers(live *inspect.Sources) {
	if p.replicas == nil {
		return
	}
	live.Others = p.replicas.Others
	live.Position = func() replicas.Position {
		mark := p.loop.Published()
		position := replicas.Position{Built: mark.Revision, BuiltID: mark.ID}
		if p.kube != nil { // each replica counts revisions of its own there
			position.Seen = p.kube.Seen(mark.Revision)
		}
		return position
	}
}

// leaveBoard tells the other replicas that this one has stopped.
func (p *controlPlane) leaveBoard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	p.replicas.Leave(ctx)
}

// replicaName names this process by its host and the port of its API, because a host
// may run several.
func replicaName(api net.Listener) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	_, port, err := net.SplitHostPort(api.Addr().String())
	if err != nil {
		return host
	}
	return net.JoinHostPort(host, port)
}
