package embedded

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
)

const (
	// topMinutes is how many minutes Top covers, including the current one.
	topMinutes = 5
	// topValues is how many values are tracked in each minute.
	topValues = 512
	// topText is how many bytes of a value are kept.
	topText = 256
)

// Limited is a value that went over its limit.
type Limited struct {
	// Domain and Key identify the limit as in Stat.
	Domain, Key string
	// Value is what was counted, such as "remote_address=10.0.0.1". The parts
	// of a descriptor are joined with " > ", and text beyond 256 bytes is cut.
	Value string
	// Shadow means that the limit only counts: these requests were allowed.
	Shadow bool
	// Count is the number of hits over the limit. The true number is between
	// Count-Error and Count, minus what Top documents about forgotten values.
	Count, Error uint64
}

// top tracks the most limited values with the space-saving algorithm over each
// of the last minutes.
type top struct {
	mu      sync.Mutex
	minutes [topMinutes]minute
}

type minute struct {
	start int64 // in minutes since 1970
	items map[id]*item
	heap  byCount
}

type item struct {
	Limited
	id    id
	index int
}

// add counts hits over a limit. value returns the text of the value, and is
// called only for a value that is not tracked yet.
func (t *top) add(key id, now int64, hits uint64, value func() Limited) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.minutes[now/60%topMinutes]
	if m.items == nil || m.start != now/60 {
		*m = minute{start: now / 60, items: map[id]*item{}}
	}
	if at, ok := m.items[key]; ok {
		at.Count += hits
		heap.Fix(&m.heap, at.index)
		return
	}
	at := &item{Limited: value(), id: key}
	at.Count = hits
	m.items[key] = at
	if len(m.heap) < topValues {
		heap.Push(&m.heap, at)
		return
	}
	// The new value replaces the least frequent one, and may have occurred as
	// often.
	least := m.heap[0]
	delete(m.items, least.id)
	at.Count, at.Error = least.Count+hits, least.Count
	m.heap[0] = at
	heap.Fix(&m.heap, 0)
}

func (t *top) list(now int64, n int) []Limited {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := map[id]*Limited{}
	for i := range t.minutes {
		m := &t.minutes[i]
		if m.start > now/60 || m.start <= now/60-topMinutes {
			continue
		}
		for key, at := range m.items {
			sum, ok := sums[key]
			if !ok {
				sum = &Limited{Domain: at.Domain, Key: at.Key, Value: at.Value, Shadow: at.Shadow}
				sums[key] = sum
			}
			sum.Count += at.Count
			sum.Error += at.Error
		}
	}
	list := make([]Limited, 0, len(sums))
	for _, sum := range sums {
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b Limited) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Value, b.Value))
	})
	return list[:max(0, min(n, len(list)))]
}

// valueText returns the readable text of a counted value.
func valueText(entries []*commonv3.RateLimitDescriptor_Entry) string {
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteString(limits.PathJoin)
		}
		b.WriteString(e.GetKey() + "=" + e.GetValue())
		if b.Len() > topText {
			return strings.ToValidUTF8(strings.Clone(b.String()[:topText]), "")
		}
	}
	return b.String()
}

// byCount is a heap.Interface with the smallest count at the front.
type byCount []*item

func (h byCount) Len() int           { return len(h) }
func (h byCount) Less(i, j int) bool { return h[i].Count < h[j].Count }
func (h byCount) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *byCount) Push(x any) {
	at, _ := x.(*item) // only add pushes
	at.index = len(*h)
	*h = append(*h, at)
}

// Pop implements heap.Interface. It is never called.
func (h *byCount) Pop() any { panic("never called") }
