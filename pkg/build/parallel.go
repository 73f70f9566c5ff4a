package build

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// inParallel calls work with 0 to n-1, on all CPUs, and returns after the last
// call has. The calls must not depend on each other.
func inParallel(n int, work func(i int)) {
	var taken atomic.Int64
	loop := func() {
		for i := taken.Add(1) - 1; i < int64(n); i = taken.Add(1) - 1 {
			work(int(i))
		}
	}
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		group.Go(loop)
	}
	loop()
	group.Wait()
}

// clusterCache makes each cluster of one Apply once, by name: within one
// configuration a name stands for one content. Many goroutines may use it.
type clusterCache struct {
	mu     sync.Mutex
	byName map[string]*cachedCluster
}

type cachedCluster struct {
	once     sync.Once
	resource *snapshot.Resource
	err      error
}

func newClusterCache() *clusterCache { return &clusterCache{byName: map[string]*cachedCluster{}} }

func (c *clusterCache) encode(cluster *ir.Cluster) (*snapshot.Resource, error) {
	c.mu.Lock()
	cached := c.byName[cluster.Name]
	if cached == nil {
		cached = &cachedCluster{}
		c.byName[cluster.Name] = cached
	}
	c.mu.Unlock()
	cached.once.Do(func() { cached.resource, cached.err = encodeCluster(cluster) })
	return cached.resource, cached.err
}
