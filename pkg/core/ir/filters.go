package ir

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Filters are what the filters of a host or a route do, by the name of the filter. The package of a filter in
// pkg/core/filter has the Go type of its value. Values never change: routes share them.
type Filters map[string]any

// With returns the filters with a value for one of them.
func (f Filters) With(name string, value any) Filters {
	with := maps.Clone(f)
	if with == nil {
		with = Filters{}
	}
	with[name] = value
	return with
}

// MarshalJSON writes the filters beside the other fields.
func (h *Host) MarshalJSON() ([]byte, error) {
	type fields Host
	return beside((*fields)(h), h.Filters)
}

// MarshalJSON writes the filters beside the other fields.
func (r *Route) MarshalJSON() ([]byte, error) {
	type fields Route
	return beside((*fields)(r), r.Filters)
}

// MarshalJSON writes the filters beside the other fields.
func (f *Forward) MarshalJSON() ([]byte, error) {
	type fields Forward
	return beside((*fields)(f), f.Filters)
}

// beside writes two JSON objects as one. The first has at least one field.
func beside(fields any, filters Filters) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil || len(filters) == 0 {
		return text, err
	}
	more, err := json.Marshal(filters)
	if err != nil {
		return nil, err
	}
	return append(append(text[:len(text)-1], ','), more[1:]...), nil
}

// WithCluster returns a list of clusters, sorted by name, with c.
func WithCluster(list []*Cluster, c *Cluster) []*Cluster {
	byName := func(c *Cluster, name string) int { return strings.Compare(c.Name, name) }
	at, there := slices.BinarySearchFunc(list, c.Name, byName)
	if there {
		return list
	}
	return slices.Insert(slices.Clone(list), at, c)
}
