package kube

import (
	"maps"
	"sync"
)

// mostPositions bounds what is kept. Who asks for a revision from before learns less than there was.
const mostPositions = 256

// position is up to where a revision of the mirror has what Kubernetes says.
type position struct {
	revision int64
	seen     map[string]int64
}

// positions says for each revision of the mirror up to which resourceVersion of each kind it has what Kubernetes says.
// It is safe for many goroutines.
type positions struct {
	mu   sync.Mutex
	list []position // by revision
}

// add notes what a revision has. The same revision has more when nothing of it changed the mirror.
func (p *positions) add(revision int64, seen map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.list); n > 0 {
		last := p.list[n-1]
		if maps.Equal(last.seen, seen) {
			return // what is in the newer revision is in the older one
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
