package snapshot

import "slices"

// counts are the resources of one type that are in use.
type counts struct {
	byName  map[string]*counted
	list    []*Resource // sorted by name, without pending changes
	changed map[string]struct{}
}

type counted struct {
	resource *Resource
	users    int
}

func newCounts() *counts {
	return &counts{byName: map[string]*counted{}, changed: map[string]struct{}{}}
}

func (c *counts) add(r *Resource) {
	n := c.byName[r.Name]
	if n == nil {
		n = &counted{}
		c.byName[r.Name] = n
	}
	n.users++
	// Two upstreams of a cluster may swap places without a change of its content.
	if n.resource == nil || n.resource.Version != r.Version || !slices.Equal(n.resource.Endpoints, r.Endpoints) {
		n.resource = r
		c.changed[r.Name] = struct{}{}
	}
}

// replace replaces the resource with the name of r and keeps its users.
func (c *counts) replace(r *Resource) {
	c.byName[r.Name].resource = r
	c.changed[r.Name] = struct{}{}
}

func (c *counts) drop(r *Resource) {
	n := c.byName[r.Name]
	n.users--
	if n.users == 0 {
		delete(c.byName, r.Name)
		c.changed[r.Name] = struct{}{}
	}
}

// sorted returns the resources by name. If nothing changed, it returns the same
// slice as before.
func (c *counts) sorted() []*Resource {
	if len(c.changed) > 0 {
		changes := make(map[string]*Resource, len(c.changed))
		for name := range c.changed {
			changes[name] = nil
			if n := c.byName[name]; n != nil {
				changes[name] = n.resource
			}
		}
		c.list = merge(c.list, changes, resourceName)
		c.changed = map[string]struct{}{}
	}
	return c.list
}
