package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// floor publishes a world.
type floor struct {
	mu      sync.Mutex
	world   *world
	version int
	cache   cachev3.SnapshotCache
	changed chan struct{} // capacity 1; nil: publish within each change
}

// publishOrSignal requires the lock.
func (f *floor) publishOrSignal(ctx context.Context) {
	if f.changed == nil {
		if err := f.publish(context.WithoutCancel(ctx)); err != nil {
			die(err)
		}
		return
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// publishChanges publishes after changes until ctx ends.
func (f *floor) publishChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		}
		f.mu.Lock()
		snapshot, err := f.snapshot()
		f.mu.Unlock()
		if err == nil {
			err = f.cache.SetSnapshot(ctx, layout.Node, snapshot)
		}
		if err != nil && ctx.Err() == nil {
			die(err)
		}
	}
}

func (f *floor) publish(ctx context.Context) error {
	snapshot, err := f.snapshot()
	if err != nil {
		return err
	}
	return f.cache.SetSnapshot(ctx, layout.Node, snapshot)
}

func (f *floor) snapshot() (*cachev3.Snapshot, error) {
	f.version++
	routes := f.world.form.routeConfiguration()
	var clusters []types.Resource
	for _, s := range f.world.sorted {
		routes.VirtualHosts = append(routes.VirtualHosts, s.host)
		for _, c := range s.clusters {
			clusters = append(clusters, c)
		}
	}
	snapshot, err := cachev3.NewSnapshot(strconv.Itoa(f.version), map[resourcev3.Type][]types.Resource{
		resourcev3.ClusterType:         clusters,
		resourcev3.RouteType:           {routes},
		resourcev3.ListenerType:        {f.world.listener},
		resourcev3.ExtensionConfigType: f.world.extensions,
	})
	if err != nil {
		return nil, fmt.Errorf("making snapshot %d: %w", f.version, err)
	}
	return snapshot, nil
}

// die ends the process: a floor that does not publish must not be measured.
func die(err error) {
	fmt.Fprintln(os.Stderr, "floor: publishing:", err)
	os.Exit(1)
}
