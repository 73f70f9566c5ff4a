package sqlstore

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run implements store.Store. It returns nil when ctx ends, and waits for a database
// that does not answer.
func (s *Store) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.repeat(ctx, s.opts.PollInterval, "looking for changes", s.poll) })
	group.Go(func() error { return s.repeat(ctx, compactInterval, "compacting the change log", s.compact) })
	if s.listen != nil {
		group.Go(func() error { return s.listen(ctx) })
	}
	return group.Wait()
}

// repeat calls do immediately and after each interval until ctx ends. After an error it
// tries again at the next interval.
func (s *Store) repeat(ctx context.Context, interval time.Duration, doing string, do func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	healthy := true
	for {
		err := do(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && healthy:
			s.log.Warn("store task stopped, trying again", "task", doing, "err", err)
		case err == nil && !healthy:
			s.log.Info("store task works again", "task", doing)
		}
		healthy = err == nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// poll signals a revision that was not announced: by a process that shares the file,
// while the listening connection was down, or by a restore.
func (s *Store) poll(ctx context.Context) error {
	return s.viewIn(ctx, s.build, func(r *reader) error {
		mark, err := r.Mark()
		if err != nil {
			return err
		}
		s.signal(mark)
		return nil
	})
}
