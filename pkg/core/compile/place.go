package compile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Place is where a configuration applies.
type Place struct {
	// Key is the key of the filter or global config.
	Key model.Key
	// Named are the objects that it names, and those that they name.
	Named map[model.Key]model.Object
	Settings
}

// Places returns what the packages of filters get of the places that have the same objects.
func Places(named map[model.Key]model.Object, s Settings) func(model.Key) seam.Place {
	return func(key model.Key) seam.Place { return Place{Key: key, Named: named, Settings: s}.forFilter() }
}

// forFilter returns what the packages of filters get of a place.
func (at Place) forFilter() seam.Place {
	return seam.Place{
		Key: at.Key, Lua: at.Lua, Open: at.Open,
		Secret: func(name string) (string, error) { return secretValue(name, at) },
		List: func(name string) *model.HeaderList {
			l, _ := at.Named[model.ListKey(name)].(*model.ParsedList)
			if l == nil || l.Fault != nil {
				return nil
			}
			headers, _ := l.Spec.(*model.HeaderList)
			return headers
		},
		Upstream: func(name string) *model.Upstream {
			u, _ := at.Named[model.UpstreamKey(name)].(*model.Upstream)
			return u
		},
		Cluster: func(u *model.Upstream) (*ir.Cluster, error) { return clusterOf(u, at.Named, at.Settings) },
		Named:   func(upstream string) (*ir.Cluster, error) { return namedCluster(upstream, at.Named, at.Settings) },
		Server:  func(upstream string, grpc bool) (*ir.Cluster, error) { return askedCluster(upstream, grpc, at) },
	}
}

func secretValue(name string, at Place) (string, error) {
	s, _ := at.Named[model.SecretKey(name)].(*model.Secret)
	if s == nil {
		return "", fmt.Errorf("secret %s does not exist", name)
	}
	value, err := s.OpenValue(at.Open)
	if err != nil {
		return "", fmt.Errorf("secret %s cannot be read: it was sealed with another key", name)
	}
	if value == "" {
		return "", fmt.Errorf("secret %s has no value (Secret_value)", name)
	}
	return value, nil
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
	c, err := clusterOf(u, named, s)
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	return c, nil
}

// askedCluster returns the cluster of an upstream that a filter asks, or why it cannot be asked.
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

// clusterOf returns the cluster of an upstream, whatever its weight. An error is the reason why it cannot be used, in
// words that follow its name.
func clusterOf(u *model.Upstream, named map[model.Key]model.Object, s Settings) (*ir.Cluster, error) {
	if why := ruledOut(u, s); why != "" {
		return nil, errors.New("has an address that " + why)
	}
	with := Credentials{Secrets: secretsAmong(named), Open: s.Open, System: s.Authorities}
	if what := unusableTLS([]*model.Upstream{u}, with); what != "" {
		return nil, errors.New(strings.TrimSuffix(what, ","))
	}
	if u.Weight == 0 {
		alone := *u
		alone.Weight = 1
		u = &alone
	}
	return Clusters([]*model.Upstream{u}, with)[0].Cluster, nil
}

func secretsAmong(named map[model.Key]model.Object) map[string]*model.Secret {
	list := map[string]*model.Secret{}
	for _, obj := range named {
		if s, ok := obj.(*model.Secret); ok {
			list[s.Name] = s
		}
	}
	return list
}
