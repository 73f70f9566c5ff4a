package pipeline

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// inParallel calls work with 0 to n-1 on all CPUs and waits for all calls. The calls
// must be independent of each other.
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

// clusterCache encodes each cluster of one Apply once, by name: within one
// configuration, a name has one content. It is safe for concurrent use.
type clusterCache struct {
	mu      sync.Mutex
	byName  map[string]*cachedCluster
	secrets *secretCache
}

type cachedCluster struct {
	once  sync.Once
	named snapshot.Named
	err   error
}

func newClusterCache(secrets *secretCache) *clusterCache {
	return &clusterCache{byName: map[string]*cachedCluster{}, secrets: secrets}
}

// encode encodes the cluster and the secrets that it names.
func (c *clusterCache) encode(cluster *ir.Cluster) (snapshot.Named, error) {
	c.mu.Lock()
	cached := c.byName[cluster.Name]
	if cached == nil {
		cached = &cachedCluster{}
		c.byName[cluster.Name] = cached
	}
	c.mu.Unlock()
	cached.once.Do(func() { cached.named, cached.err = encodeCluster(cluster, c.secrets) })
	return cached.named, cached.err
}

// secretCache encodes each secret that clusters name once, and keeps it while it is in
// use. The system's authorities are about 200 kB, and thousands of clusters may name
// them. It is safe for concurrent use.
type secretCache struct {
	mu     sync.Mutex
	byName map[string]cachedSecret
}

type cachedSecret struct {
	content  string
	resource weak.Pointer[snapshot.Resource]
}

func newSecretCache() *secretCache { return &secretCache{byName: map[string]cachedSecret{}} }

// encode returns the secret with a name and content. fresh makes it if it is not
// cached.
func (c *secretCache) encode(
	name, content string, fresh func() (*snapshot.Resource, error),
) (*snapshot.Resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached := c.byName[name]; cached.content == content {
		if r := cached.resource.Value(); r != nil {
			return r, nil
		}
	}
	r, err := fresh()
	if err == nil {
		c.byName[name] = cachedSecret{content, weak.Make(r)}
	}
	return r, err
}

// forget drops secrets that are no longer in use.
func (c *secretCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, cached := range c.byName {
		if cached.resource.Value() == nil {
			delete(c.byName, name)
		}
	}
}
