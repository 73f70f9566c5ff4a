package kube

import (
	"maps"
	"sync"
)

// mostPositions bounds what is kept. For an older revision, at may return less than it had.
const mostPositions = 256

// position is how far a revision of the mirror has the changes of Kubernetes.
type position struct {
	revision int64
	seen     map[string]int64
}

// positions has, for each revision of the mirror and each kind, the resourceVersion up to which it has the changes of
// Kubernetes. It is safe for concurrent use.
type positions struct {
	mu   sync.Mutex
	list []position // by revision
}

// add records what a revision has. The same revision has more if later changes did not change the mirror.
func (p *positions) add(revision int64, seen map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.list); n > 0 {
		last := p.list[n-1]
		if maps.Equal(last.seen, seen) {
			return // the older revision has everything of the newer one
		}
		if last.revision == revision {
			p.list[n-1].seen = seen
			return
		}
	}
	p.list = append(p.list, position{revision, seen})
	if len(p.list) > mostPositions {
		p.list = append(p.list[:0], p.list[len(p.list)-mostPositions/2:]...)
	}
}

// at returns what a revision has, by kind; nil if that is not known.
func (p *positions) at(revision int64) map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.list) - 1; i >= 0; i-- {
		if p.list[i].revision <= revision {
			return p.list[i].seen
		}
	}
	return nil
}
