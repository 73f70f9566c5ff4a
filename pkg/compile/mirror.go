package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addMirror replaces a mirror that was added before.
func addMirror(r *ir.Route, f *model.MirrorFilter, at Place) error {
	if r.Forward == nil {
		return nil
	}
	cluster, err := namedCluster(f.Upstream, at.Named, at.Settings)
	if err != nil {
		return err
	}
	if before := r.Forward.Mirror; before != nil {
		r.Asked = slices.DeleteFunc(r.Asked, func(c *ir.Cluster) bool { return c.Name == before.Cluster })
	}
	r.Forward.Mirror = &ir.Mirror{Cluster: cluster.Name, Millionths: f.Millionths(), KeepCredentials: !f.Strips()}
	r.Asked = append(r.Asked, cluster)
	slices.SortFunc(r.Asked, func(a, b *ir.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// namedCluster returns the cluster of an upstream that a filter names, whatever its weight, or why it
// cannot be used.
func namedCluster(name string, named map[model.Key]model.Object, s Settings) (*ir.Cluster, error) {
	u, _ := named[model.UpstreamKey(name)].(*model.Upstream)
	if u == nil {
		return nil, fmt.Errorf("upstream %s does not exist", name)
	}
	if why := ruledOut(u, s); why != "" {
		return nil, fmt.Errorf("upstream %s has an address that %s", name, why)
	}
	with := Credentials{Secrets: secretsAmong(named), Open: s.Open, System: s.Authorities}
	if what := unusableTLS([]*model.Upstream{u}, with); what != "" {
		return nil, errors.New("it " + strings.TrimSuffix(what, ","))
	}
	if u.Weight == 0 {
		alone := *u
		alone.Weight = 1
		u = &alone
	}
	return Clusters([]*model.Upstream{u}, with)[0].Cluster, nil
}
