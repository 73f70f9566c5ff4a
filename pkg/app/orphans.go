package app

import (
	"context"

	"github.com/gatehouse-gateway/gatehouse/pkg/standalone"
)

// reapOrphans waits for orphans, if the program is process 1, until stop is called. The
// children are those that the program waits for itself.
func reapOrphans(env Env, children *standalone.Children) (stop func()) {
	if !env.Init {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		children.Reap(ctx, env.Log)
	}()
	return func() {
		cancel()
		<-done
	}
}
