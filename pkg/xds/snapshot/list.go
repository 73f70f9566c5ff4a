package snapshot

import (
	"slices"
	"strings"
	"sync"
)

// Part is a part of an extension that a host names, such as a set of API keys in the list of keys.
type Part struct {
	// Extension is the name of the extension.
	Extension string
	Name      string
}

// List is an extension that is joined from parts.
type List struct {
	// Name is the name of the extension.
	Name string
	// Parts are those of the extension in the snapshot. Others are not wanted, but hosts that an Envoy
	// has may name them. Both are sorted.
	Parts, Others []string

	join func(parts []string) (*Resource, error)
	mu   sync.Mutex
	made map[string]*Resource
}

// NewList makes a list. join makes the extension with some of its parts, as they are now. Streams call
// it at any time, but not twice at once.
func NewList(name string, parts, others []string, join func(parts []string) (*Resource, error)) *List {
	return &List{Name: name, Parts: parts, Others: others, join: join, made: map[string]*Resource{}}
}

// With returns the extension with some of Others in addition, which all streams share; nil if it has no
// others. A part that does not exist any more is omitted.
func (l *List) With(others []string) *Resource {
	others = slices.DeleteFunc(slices.Clone(others), func(name string) bool {
		_, is := slices.BinarySearch(l.Others, name)
		return !is
	})
	if len(others) == 0 {
		return nil
	}
	parts := union(l.Parts, others)
	key := strings.Join(parts, "\n")
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.made[key]; r != nil {
		return r
	}
	r, err := l.join(parts)
	if err != nil {
		return nil // it is as valid for Envoy as without the others
	}
	if len(l.made) < maxVariants {
		l.made[key] = r
	}
	return r
}
