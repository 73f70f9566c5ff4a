package store

import "github.com/gatehouse-gateway/gatehouse/pkg/core/model"

// maxAsked is the number of objects from which all objects of a kind are read, not only
// those that refer to them: a query has a limited number of arguments.
const maxAsked = 500

// Graph is the graph of what is stored. It reads many objects in few queries, and none
// twice.
type Graph struct {
	reader  Reader
	from    map[model.Key][]model.Key
	proxies []string
}

// NewGraph returns the graph that r reads.
func NewGraph(r Reader) *Graph { return &Graph{reader: r, from: map[model.Key][]model.Key{}} }

// Referrers implements model.Graph.
func (g *Graph) Referrers(keys []model.Key, fn func(to, from model.Key)) error {
	unknown := map[model.Kind][]model.Key{}
	for _, key := range keys {
		if _, known := g.from[key]; !known {
			g.from[key] = nil
			unknown[key.Kind] = append(unknown[key.Kind], key)
		}
	}
	for kind, keys := range unknown {
		for _, user := range kind.UserKinds() {
			if err := g.read(user, keys); err != nil {
				return err
			}
		}
	}
	for _, to := range keys {
		for _, from := range g.from[to] {
			fn(to, from)
		}
	}
	return nil
}

// read records which objects of a kind refer to keys.
func (g *Graph) read(kind model.Kind, keys []model.Key) error {
	q := Query{Kind: kind}
	if len(keys) <= maxAsked {
		q.To = keys
	}
	objs, err := g.reader.List(q)
	if err != nil {
		return err
	}
	asked := make(map[model.Key]bool, len(keys))
	for _, key := range keys {
		asked[key] = true
	}
	for _, obj := range objs {
		for _, to := range model.Uses(obj) {
			if asked[to] {
				g.from[to] = append(g.from[to], obj.Key())
			}
		}
	}
	return nil
}

// Proxies implements model.Graph.
func (g *Graph) Proxies() ([]string, error) {
	if g.proxies != nil {
		return g.proxies, nil
	}
	list, err := g.reader.List(Query{Kind: model.KindProxy})
	if err != nil {
		return nil, err
	}
	g.proxies = make([]string, len(list))
	for i, p := range list {
		g.proxies[i] = p.Key().Name()
	}
	return g.proxies, nil
}
