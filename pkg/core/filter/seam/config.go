package seam

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Config is what configurations of one type do to hosts and routes.
type Config struct {
	// Takes reports whether a configuration has the Go type of the hooks. Any other type closes the object that the
	// filter is on.
	Takes func(model.Spec) bool
	// Host adds a filter of a service to its host. An error is the reason why it cannot, and closes the service. If Host
	// is nil, filters of the service are added to each of its routes, before the route's own.
	Host func(*ir.Host, model.Spec, Place) error
	// Route adds a filter to a route. The route may already answer itself. An error is the reason why the filter cannot
	// be added, and closes the route. If Route is nil, the type is for services only.
	Route func(*ir.Route, model.Spec, Place) error
	// Last means that Route adds one configuration to a route: its own, or else its service's. Of several, it is the
	// last.
	Last bool
	// Several means that all configurations of the place that Last chooses are added, and not only the last one.
	Several bool
	// Finish completes a route with the last configuration, after Route of all filters and Finish of those that come
	// later in their order. It may add routes before it.
	Finish func(*ir.Route, model.Spec, Place) error
	// MaxRoutes returns how many routes a service with a filter may have, and what is wrong with more, in words that
	// follow the name of the service; empty means that any number is allowed.
	MaxRoutes func(*model.ParsedFilter) (most int, wrong string)
	// Forwards means that Route sets the clusters that a route forwards to. The route's own upstreams do not count.
	Forwards bool
	// Conflict returns why the configuration of a route rules its filters of the type out, in words that follow the name
	// of the route, and closes the route. Empty means no conflict.
	Conflict func(*model.RouteTree) string
	// Clash returns why filters of one service or route cannot be together, in words that follow its name; empty if they
	// can.
	Clash func([]*model.ParsedFilter) string
	// Needs returns what a host and its routes need from the listeners.
	Needs func(*ir.Host) ir.Needs
}

// Place is where a filter is compiled.
type Place struct {
	// Key is the key of the filter.
	Key model.Key
	// Lua means that the operator allows filters that run scripts.
	Lua bool
	// Named returns the cluster of an upstream that the filter names, whatever its weight. An error is the reason why
	// it cannot be used.
	Named func(upstream string) (*ir.Cluster, error)
	// Open opens a text that was sealed for a place; nil means that nothing can be opened. Secret returns the value of a
	// secret that the filter names.
	Open   func(sealed, place string) (string, error)
	Secret func(name string) (string, error)
	// List returns a list of headers that the filter names; nil if there is none that can be read.
	List func(name string) *model.HeaderList
	// Upstream returns an upstream that the filter names; nil if there is none. Cluster returns the cluster of an upstream.
	// An error is the reason why it cannot be used, in words that follow its name.
	Upstream func(name string) *model.Upstream
	Cluster  func(*model.Upstream) (*ir.Cluster, error)
	// Server returns the cluster of an upstream that the filter asks about each request. An error is the reason why it
	// cannot be used.
	Server func(upstream string, grpc bool) (*ir.Cluster, error)
}

// Hooks are hooks for configurations of the type S.
func Hooks[S model.Spec](host func(*ir.Host, S, Place) error, route func(*ir.Route, S, Place) error) *Config {
	return &Config{
		Takes: func(spec model.Spec) bool { _, ok := spec.(S); return ok },
		Host:  typed(host), Route: typed(route),
	}
}

// LastOf are hooks for configurations of the type S, of which a route has one.
func LastOf[S model.Spec](route, finish func(*ir.Route, S, Place) error) *Config {
	c := Hooks(nil, route)
	c.Last, c.Finish = true, typed(finish)
	return c
}

// typed turns a hook for type S into a hook for any configuration.
func typed[T any, S model.Spec](add func(T, S, Place) error) func(T, model.Spec, Place) error {
	if add == nil {
		return nil
	}
	return func(to T, spec model.Spec, at Place) error {
		if s, ok := spec.(S); ok {
			return add(to, s, at)
		}
		return nil
	}
}

// Key is the name of a filter among the ir.Filters of a host or route. V is the type of its value, mostly a pointer.
type Key[V any] string

// Of returns the value; the zero value if there is none.
func (k Key[V]) Of(f ir.Filters) V {
	value, _ := f[string(k)].(V)
	return value
}

// In returns the filters with a value.
func (k Key[V]) In(f ir.Filters, value V) ir.Filters { return f.With(string(k), value) }

// Forward sets a value for the requests that a route forwards. A route that answers itself has none.
func (k Key[V]) Forward(r *ir.Route, value V) {
	if r.Forward != nil {
		r.Forward.Filters = k.In(r.Forward.Filters, value)
	}
}

// OfForward returns the value for the requests that a route forwards; the zero value if there is none.
func (k Key[V]) OfForward(r *ir.Route) (value V) {
	if r.Forward != nil {
		value = k.Of(r.Forward.Filters)
	}
	return value
}

// Adds are hooks that turn a configuration of type S, and the value from the ones before, into a new value.
func Adds[S model.Spec, V any](k Key[V], add func(before V, f S, at Place) (V, error)) *Config {
	return Hooks(func(h *ir.Host, f S, at Place) error {
		value, err := add(k.Of(h.Filters), f, at)
		if err == nil {
			h.Filters = k.In(h.Filters, value)
		}
		return err
	}, func(r *ir.Route, f S, at Place) error {
		value, err := add(k.Of(r.Filters), f, at)
		if err == nil {
			r.Filters = k.In(r.Filters, value)
		}
		return err
	})
}

// OfHost returns the messages for the value of a host; nothing without a value.
func OfHost[V any](k Key[V], messages func(V) ([]Message, error)) func(*ir.Host) ([]Message, error) {
	return func(h *ir.Host) ([]Message, error) { return of(k, h.Filters, messages) }
}

// OfRoute returns the messages for the value of a route; nothing without a value.
func OfRoute[V any](k Key[V], messages func(V) ([]Message, error)) func(*ir.Route) ([]Message, error) {
	return func(r *ir.Route) ([]Message, error) { return of(k, r.Filters, messages) }
}

func of[V any](k Key[V], f ir.Filters, messages func(V) ([]Message, error)) ([]Message, error) {
	if f[string(k)] == nil {
		return nil, nil
	}
	return messages(k.Of(f))
}
