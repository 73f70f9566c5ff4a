package tlsdir

import (
	"context"
	"time"
)

// Look reads the directory once, as at a time.
func (d *Dir) Look(ctx context.Context, now time.Time) time.Duration {
	again, _ := d.look(ctx, now)
	return again
}
