package tlsdir

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// gather is how long notifications of changes are gathered before the directory is
	// read.
	gather = 50 * time.Millisecond
	// rest is the pause after a read, as a multiple of its duration, however often a
	// large directory changes.
	rest = 4
)

// Run keeps the secrets current until ctx ends.
func (d *Dir) Run(ctx context.Context) error {
	w := openWatcher(d.opts)
	defer w.close()
	due := time.NewTimer(0)
	defer due.Stop()
	at, pause := time.Now(), gather
	sooner := func(in time.Duration) {
		if next := time.Now().Add(in); next.Before(at) {
			at = next
			due.Reset(in)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-due.C:
			began := time.Now()
			again, dirs := d.look(ctx, began)
			pause = max(gather, rest*time.Since(began))
			if w.follow(dirs) {
				again = min(again, pause) // it may have changed before it was watched
			}
			at = time.Now().Add(again)
			due.Reset(again)
		case <-d.changed:
			sooner(max(pause, d.opts.Settle))
		case _, ok := <-w.events:
			if !ok {
				w.events = nil
			}
			sooner(pause)
		case err, ok := <-w.errors:
			if !ok {
				w.errors = nil
				break
			}
			d.opts.Log.Debug("watching the directory of certificates", "dir", d.opts.Path, "err", err)
			sooner(pause) // notifications were lost
		}
	}
}

// watcher watches directories. If the system has no notifications, it watches none: the
// directory is then only read from time to time.
type watcher struct {
	log    *slog.Logger
	system *fsnotify.Watcher
	events chan fsnotify.Event
	errors chan error
	// followed are the directories as they were when the watch began; nil for one that
	// cannot be watched.
	followed map[string]os.FileInfo
}

func openWatcher(o Options) *watcher {
	w := &watcher{log: o.Log, followed: map[string]os.FileInfo{}}
	if o.Blind {
		return w
	}
	system, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("changes in the directory of certificates are not notified, it is read from time to time", "dir", o.Path,
			"every", o.Every, "err", err)
		return w
	}
	w.system, w.events, w.errors = system, system.Events, system.Errors
	return w
}

func (w *watcher) close() {
	if w.system != nil {
		_ = w.system.Close() // nothing listens anymore
	}
}

// follow watches these directories and no others. more says that there is a new one.
func (w *watcher) follow(dirs []string) (more bool) {
	if w.system == nil {
		return false
	}
	for dir := range w.followed {
		if !slices.Contains(dirs, dir) {
			_ = w.system.Remove(dir) // it may be gone
			delete(w.followed, dir)
		}
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			continue // it is gone, which the next look detects
		}
		was, known := w.followed[dir]
		if known && (was == nil || os.SameFile(was, info)) {
			continue
		}
		if known {
			_ = w.system.Remove(dir)
		}
		if err := w.system.Add(dir); err != nil {
			w.log.Warn("changes in a directory of certificates are not notified, it is read from time to time", "dir", dir,
				"err", err)
			info = nil
		}
		w.followed[dir] = info
		more = more || info != nil
	}
	return more
}
