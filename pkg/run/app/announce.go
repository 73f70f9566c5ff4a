package app

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// maxAnnounced is how many revisions of one step are announced: the newest.
const maxAnnounced = 1000

// announcer is a source that tells the registry of each revision that the build loop
// reads, whichever process wrote it. It is for one goroutine.
type announcer struct {
	pipeline.Source
	store interface {
		ReadForBuild(ctx context.Context, fn func(store.Reader) error) error
	}
	registry *status.Registry
	log      *slog.Logger
	// configured reports whether the database has, or had, a configuration; see
	// isConfigured.
	configured atomic.Bool
	// told is the newest revision that was announced, or the newest at the start or
	// after the restore of a backup; -1 means that nothing was read yet.
	told int64
}

func newAnnouncer(s *sqlstore.Store, registry *status.Registry, log *slog.Logger) *announcer {
	return &announcer{Source: s, store: s, registry: registry, log: log, told: -1}
}

// Since implements pipeline.Source.
func (a *announcer) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	change, err := a.Source.Since(ctx, at)
	if err == nil {
		err = a.updateConfigured(ctx, change.Revision)
	}
	switch {
	case err != nil:
		return change, err
	case change.Restored:
		a.told = change.Revision
		a.registry.RecordRestore(change.Revision)
	case a.told < 0:
		a.told = change.Revision
	case a.told < change.Revision:
		if err := a.announce(ctx, change.Revision); err != nil {
			// The configuration does not wait for its announcement.
			a.log.Warn("changes are not in the events yet", "rev", change.Revision, "err", err)
		}
	}
	return change, nil
}

// updateConfigured checks whether a revision has a configuration, until one has.
func (a *announcer) updateConfigured(ctx context.Context, revision int64) error {
	if a.configured.Load() {
		return nil
	}
	return a.store.ReadForBuild(ctx, func(r store.Reader) error {
		configured, err := isConfigured(r, revision)
		a.configured.Store(configured)
		return err
	})
}

// announce announces the new revisions, up to and including to.
func (a *announcer) announce(ctx context.Context, to int64) error {
	var list []store.Revision
	err := a.store.ReadForBuild(ctx, func(r store.Reader) (err error) {
		list, err = r.Revisions(to+1, int(min(to-a.told, maxAnnounced)))
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(list) {
		if r.Revision > a.told { // others were compacted away
			a.registry.RecordChange(status.Event{Revision: r.Revision, Actor: r.Actor, Request: r.Request, Changes: r.Changes, Message: r.Message})
		}
	}
	a.told = to
	return nil
}
