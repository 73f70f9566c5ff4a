package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostExtAuthz(h *ir.Host, f *model.ExtAuthzFilter, at Place) (err error) {
	h.ExtAuthz, h.Asked, err = extAuthz(f, h.Asked, at)
	return err
}

func addRouteExtAuthz(r *ir.Route, f *model.ExtAuthzFilter, at Place) (err error) {
	r.ExtAuthz, r.Asked, err = extAuthz(f, r.Asked, at)
	return err
}

// extAuthz compiles a filter and adds its cluster to asked.
func extAuthz(f *model.ExtAuthzFilter, asked []*ir.Cluster, at Place) (*ir.ExtAuthz, []*ir.Cluster, error) {
	c, err := askedCluster(f.Upstream, f.Protocol == model.AskGRPC, at)
	if err != nil {
		return nil, asked, err
	}
	out := &ir.ExtAuthz{
		Cluster: c.Name, GRPC: f.Protocol == model.AskGRPC, Path: f.Path, PathPrefix: strings.TrimRight(f.PathPrefix, "/"),
		BodyBytes: f.BodyBytes, Timeout: time.Duration(f.Timeout), Allow: f.OnError == model.OnErrorAllow,
	}
	for _, name := range f.UpstreamHeaders {
		out.UpstreamHeaders = append(out.UpstreamHeaders, strings.ToLower(name))
	}
	slices.Sort(out.UpstreamHeaders)
	return out, withAsked(asked, c), nil
}

// withAsked returns asked with c, without duplicates.
func withAsked(asked []*ir.Cluster, c *ir.Cluster) []*ir.Cluster {
	at, there := slices.BinarySearchFunc(asked, c.Name, func(c *ir.Cluster, name string) int { return strings.Compare(c.Name, name) })
	if there {
		return asked
	}
	return slices.Insert(slices.Clone(asked), at, c)
}

// askedCluster returns the cluster of an upstream that a filter asks, or why it cannot be
// asked.
func askedCluster(name string, grpc bool, at Place) (*ir.Cluster, error) {
	if u, is := at.Named[model.UpstreamKey(name)].(*model.Upstream); is {
		if grpc && u.Protocol != "h2c" && u.Protocol != "h2" {
			return nil, fmt.Errorf("upstream %s has the protocol %s, and gRPC needs h2c or h2", name, u.Protocol)
		}
		if u.Weight == 0 {
			return nil, fmt.Errorf("upstream %s has weight 0", name)
		}
	}
	return namedCluster(name, at.Named, at.Settings)
}
