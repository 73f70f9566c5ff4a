package kube

import "github.com/gatehouse-gateway/gatehouse/pkg/model"

// Positions exports positions to specs.
type Positions struct{ positions }

func (p *Positions) Add(revision int64, seen map[string]int64) { p.add(revision, seen) }

func (p *Positions) At(revision int64) map[string]int64 { return p.at(revision) }

// ReadProxies reads the file of the proxies.
func ReadProxies(text string, names ...string) ([]*model.Proxy, error) {
	return readProxies([]byte(text), names)
}
