package build

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

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

// encode makes the cluster and the secrets that it names.
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

// secretCache makes each secret that clusters name once, for as long as somebody
// has it: the authorities of the system are some 200 kB, and thousands of clusters may
// name them. Many goroutines may use it.
type secretCache struct {
	mu     sync.Mutex
	byName map[string]cachedSecret
}

type cachedSecret struct {
	content  string
	resource weak.Pointer[snapshot.Resource]
}

func newSecretCache() *secretCache { return &secretCache{byName: map[string]cachedSecret{}} }

// encode returns the secret of a name and content, which fresh makes.
func (c *secretCache) encode(name, content string, fresh func() (*snapshot.Resource, error)) (*snapshot.Resource, error) {
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

// forget drops what nobody has any more.
func (c *secretCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, cached := range c.byName {
		if cached.resource.Value() == nil {
			delete(c.byName, name)
		}
	}
}
