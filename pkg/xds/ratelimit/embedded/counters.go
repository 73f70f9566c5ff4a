package embedded

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

const (
	maxShards    = 64
	minShardSize = 256
	// units is one more than the highest number of a unit.
	units = 8
)

// id identifies a counted value by two 64-bit hashes with secret seeds, so that a
// counter needs no text.
type id [2]uint64

// counters contain how often each value was counted in its window.
type counters struct {
	now     func() time.Time
	seeds   [2]maphash.Seed
	shards  []shard
	evicted atomic.Uint64
}

// shard contains the counters of some ids in one slice without pointers, which the
// garbage collector need not scan.
type shard struct {
	mu    sync.Mutex
	max   int
	index map[id]int32
	slots []slot // index 0 is no counter, so that 0 can mean none
	// order lists the counters of each unit by the end of their windows.
	order [units]ends
}

type slot struct {
	id         id
	count      uint64
	end        int64 // of the window, Unix seconds
	prev, next int32
}

type ends struct{ first, last int32 }

func newCounters(limit int, now func() time.Time) *counters {
	n := maxShards
	for n > 1 && limit/n < minShardSize {
		n /= 2
	}
	c := &counters{
		now: now, shards: make([]shard, n), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
	for i := range c.shards {
		c.shards[i] = shard{max: min(limit/n, math.MaxInt32-1), index: map[id]int32{}, slots: make([]slot, 1)}
	}
	return c
}

// id returns the id of a value's counter. It writes lengths before texts, so that
// different values always have different bytes.
func (c *counters) id(domain string, unit int32, entries []*commonv3.RateLimitDescriptor_Entry) id {
	var array [256]byte
	b := append(array[:0], byte(unit)) //nolint:gosec // units are below 8
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(domain)
	for _, e := range entries {
		text(e.GetKey())
		text(e.GetValue())
	}
	return id{maphash.Bytes(c.seeds[0], b), maphash.Bytes(c.seeds[1], b)}
}

// add counts hits in the window of the current second. It returns the number before
// and after, the current second, and the second in which the window ends. It reads
// the clock under the lock, so that a late request cannot begin its window a second
// time.
func (c *counters) add(key id, unit int32, period int64, hits uint64) (before, after uint64, now, end int64) {
	s := &c.shards[key[1]%uint64(len(c.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	now = c.now().Unix()
	end = now - now%period + period
	i, there := s.index[key]
	switch {
	case !there:
		var evicted bool
		if i, evicted = s.takeSlot(now); evicted {
			c.evicted.Add(1)
		}
		s.index[key] = i
		s.slots[i] = slot{id: key, end: end}
		s.push(unit, i)
	case s.slots[i].end != end: // a later end means that the clock was set back
		s.remove(unit, i)
		s.slots[i].count, s.slots[i].end = 0, end
		s.push(unit, i)
	}
	at := &s.slots[i]
	before = at.count
	sum, carry := bits.Add64(before, hits, 0)
	if carry != 0 {
		sum = math.MaxUint64
	}
	at.count = sum
	return before, sum, now, end
}

// takeSlot returns a slot for a new counter. It reuses the slot of the counter that
// ends first if that has ended or if there is no more room; otherwise it returns a
// new slot.
func (s *shard) takeSlot(now int64) (i int32, evicted bool) {
	unit := int32(0)
	for u := range s.order {
		first := s.order[u].first
		if first != 0 && (i == 0 || s.slots[first].end < s.slots[i].end) {
			unit, i = int32(u), first
		}
	}
	full := len(s.slots) > s.max
	ended := s.slots[i].end <= now // not used when there is none
	if i == 0 || !full && !ended {
		s.slots = append(s.slots, slot{})
		return int32(len(s.slots) - 1), false //nolint:gosec // at most max
	}
	s.remove(unit, i)
	delete(s.index, s.slots[i].id)
	return i, !ended
}

func (s *shard) push(unit, i int32) {
	o, at := &s.order[unit], &s.slots[i]
	at.prev, at.next = o.last, 0
	if o.last == 0 {
		o.first = i
	} else {
		s.slots[o.last].next = i
	}
	o.last = i
}

func (s *shard) remove(unit, i int32) {
	o, at := &s.order[unit], &s.slots[i]
	if at.prev == 0 {
		o.first = at.next
	} else {
		s.slots[at.prev].next = at.next
	}
	if at.next == 0 {
		o.last = at.prev
	} else {
		s.slots[at.next].prev = at.prev
	}
}

// size returns the number of counters that occupy a slot, including ended ones.
func (c *counters) size() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += len(s.index)
		s.mu.Unlock()
	}
	return n
}
