package pipeline

import (
	"cmp"
	"maps"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// An error of these functions describes what Envoy would refuse.

// encode encodes a route, the routes before it, and the clusters that they name.
func (r *route) encode(cache *clusterCache) error {
	r.named, r.encoded = snapshot.Named{}, nil
	for _, one := range r.ir.All() {
		if err := r.encodeOne(one, cache); err != nil {
			return err
		}
	}
	return nil
}

func (r *route) encodeOne(one *ir.Route, cache *clusterCache) error {
	out, err := translate.Route(one)
	if err != nil {
		return err
	}
	named, asked, err := cache.encodeCallClusters(one.Asked)
	if err != nil {
		return err
	}
	r.named.Clusters, r.named.Secrets = append(r.named.Clusters, named.Clusters...),
		append(r.named.Secrets, named.Secrets...)
	encoded, err := snapshot.NewRoute(out, asked...)
	if err != nil {
		return err
	}
	r.encoded = append(r.encoded, encoded)
	if one.Forward == nil {
		return nil
	}
	for _, c := range one.Forward.Clusters {
		if err := cache.encodeInto(&r.named, c.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// encodeCallClusters encodes the clusters that filters call. It also returns their names.
func (c *clusterCache) encodeCallClusters(asked []*ir.Cluster) (named snapshot.Named, names []string, err error) {
	for _, one := range asked {
		if err := c.encodeInto(&named, one); err != nil {
			return named, nil, err
		}
		names = append(names, one.Name)
	}
	return named, names, nil
}

func (c *clusterCache) encodeInto(all *snapshot.Named, one *ir.Cluster) error {
	named, err := c.encode(one)
	all.Clusters = append(all.Clusters, named.Clusters...)
	all.Secrets = append(all.Secrets, named.Secrets...)
	return err
}

func encodeCluster(c *ir.Cluster, cache *secretCache) (named snapshot.Named, err error) {
	out, err := translate.Cluster(c)
	if err != nil {
		return named, err
	}
	r, err := snapshot.NewCluster(out, upstreamRefs(c.Upstreams)...)
	if err != nil {
		return named, err
	}
	for _, e := range c.Endpoints {
		if e.Upstream != "" {
			r.Endpoints = append(r.Endpoints, snapshot.EndpointRef{
				ObjectRef: objectRef(model.UpstreamKey(e.Upstream)), Address: e.Address, Port: e.Port, DNS: e.DNS,
			})
		}
	}
	named.Clusters = []*snapshot.Resource{r}
	if named.Secrets, err = encodeUpstreamSecrets(c.TLS, cache); len(named.Secrets) > 0 {
		r.Warms = true // Envoy requests the secrets first
	}
	return named, err
}

// encodeUpstreamSecrets encodes the secrets that a cluster names.
func encodeUpstreamSecrets(t *ir.UpstreamTLS, cache *secretCache) ([]*snapshot.Resource, error) {
	var list []*snapshot.Resource
	authorities, pair := translate.UpstreamSecrets(t)
	if authorities != "" {
		r, err := cache.encode(authorities, t.Authorities.PEM, func() (*snapshot.Resource, error) {
			return snapshot.NewSecret(translate.AuthoritiesSecret(t.Authorities), secretRefs(t.Authorities.Secret)...)
		})
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	if pair != "" {
		r, err := cache.encode(pair, t.Client.Chain+t.Client.Key, func() (*snapshot.Resource, error) {
			return snapshot.NewSecret(translate.PairSecret(pair, t.Client), secretRefs(t.Client.Secret)...)
		})
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// secretRefs returns the object of a secret; nil if it is not a stored one.
func secretRefs(name string) []snapshot.ObjectRef {
	if name == "" {
		return nil
	}
	return []snapshot.ObjectRef{objectRef(model.SecretKey(name))}
}

func encodeHost(h *ir.Host, routes []*snapshot.Route, from model.Key, needs ...snapshot.Needs) (*snapshot.Host, error) {
	out, err := translate.VirtualHost(h)
	if err != nil {
		return nil, err
	}
	return snapshot.NewHost(out, routes, objectRef(from), needs...)
}

// encodeRoutes encodes routes that forward nothing.
func encodeRoutes(routes []*ir.Route) ([]*snapshot.Route, error) {
	var list []*snapshot.Route
	for _, r := range routes {
		out, err := translate.Route(r)
		if err != nil {
			return nil, err
		}
		encoded, err := snapshot.NewRoute(out)
		if err != nil {
			return nil, err
		}
		list = append(list, encoded)
	}
	return list, nil
}

// encodeCertificates encodes what Envoys receive that request a host's certificate.
func encodeCertificates(h *ir.Host, from model.Key) ([]*snapshot.Certificate, error) {
	var list []*snapshot.Certificate
	for _, c := range h.Certificates {
		name := cmp.Or(c.Name, snapshot.DefaultCertificate)
		made, err := snapshot.NewCertificate(translate.PairSecret(name, c.Pair), compile.Rank(h.Domain),
			objectRef(model.SecretKey(c.Pair.Secret)), objectRef(from))
		if err != nil {
			return nil, err
		}
		list = append(list, made)
	}
	return list, nil
}

// encodeListeners encodes all listeners and what they name, or none.
func encodeListeners(
	listeners []ir.Listener, l4 []*ir.L4Listener, from model.Key, cache *clusterCache,
) ([]*snapshot.Resource, snapshot.Named, error) {
	var list []*snapshot.Resource
	all := snapshot.Named{ForFiles: map[string]func(snapshot.Files) (*snapshot.Resource, error){}}
	for _, l := range listeners {
		r, named, err := encodeListener(l, from, cache)
		if err != nil {
			return nil, snapshot.Named{}, err
		}
		list = append(list, r)
		all.Clusters = append(all.Clusters, named.Clusters...)
		all.Secrets = append(all.Secrets, named.Secrets...)
		all.Extensions = append(all.Extensions, named.Extensions...)
		maps.Copy(all.ForFiles, named.ForFiles)
	}
	for _, l := range l4 {
		r, named, err := encodeL4(l)
		if err != nil {
			return nil, snapshot.Named{}, err
		}
		list = append(list, r)
		all.Secrets = append(all.Secrets, named.Secrets...)
		maps.Copy(all.ForFiles, named.ForFiles)
	}
	return list, all, nil
}

// encodeListener encodes a listener and what its filters name.
func encodeListener(
	l ir.Listener, from model.Key, cache *clusterCache,
) (*snapshot.Resource, snapshot.Named, error) {
	var named snapshot.Named
	out, err := translate.Listener(l)
	if err != nil {
		return nil, named, err
	}
	resources, err := translate.ListenerResources(l)
	if err != nil {
		return nil, named, err
	}
	if named.Clusters, err = encodeAll(resources.Clusters, snapshot.NewCluster); err != nil {
		return nil, named, err
	}
	for _, c := range translate.Collectors(l) {
		if err := cache.encodeInto(&named, c); err != nil {
			return nil, named, err
		}
	}
	for _, secret := range resources.Secrets {
		r, err := snapshot.NewSecret(secret, secretRefs(translate.SecretObject(secret.GetName()))...)
		if err != nil {
			return nil, named, err
		}
		named.Secrets = append(named.Secrets, r)
	}
	if named.Extensions, err = encodeAll(resources.Extensions, snapshot.NewExtension); err != nil {
		return nil, named, err
	}
	listener, err := snapshot.NewListener(out, objectRef(from))
	if err != nil {
		return nil, named, err
	}
	if l.TLS != nil {
		listener.Clusters = translate.L4Clusters(l.TLS.Passthrough)
	}
	named.ForFiles = forFiles(listener, func(f snapshot.Files) (*listenerv3.Listener, error) {
		own := l
		own.Databases, own.AccessLogs = ir.Databases{Country: f.Country, ASN: f.ASN}, logsIn(f.Logs, l.AccessLogs)
		return translate.Listener(own)
	})
	return listener, named, nil
}

// forFiles makes a listener again for an Envoy with files. It names nothing that the one without them does not.
func forFiles(
	plain *snapshot.Resource, remake func(snapshot.Files) (*listenerv3.Listener, error),
) map[string]func(snapshot.Files) (*snapshot.Resource, error) {
	return map[string]func(snapshot.Files) (*snapshot.Resource, error){
		plain.Name: func(f snapshot.Files) (*snapshot.Resource, error) {
			out, err := remake(f)
			if err != nil {
				return nil, err
			}
			r, err := snapshot.NewListener(out, plain.Objects...)
			if err != nil || r.Version == plain.Version {
				return plain, err
			}
			r.Clusters = plain.Clusters
			return r, nil
		},
	}
}

// logsIn returns logs with the directory for those that go to a file.
func logsIn(dir string, logs []ir.AccessLog) []ir.AccessLog {
	out := slices.Clone(logs)
	for i := range out {
		if out[i].File {
			out[i].Dir = dir
		}
	}
	return out
}

func encodeAll[M any](
	messages []M, encode func(M, ...snapshot.ObjectRef) (*snapshot.Resource, error),
) ([]*snapshot.Resource, error) {
	var list []*snapshot.Resource
	for _, m := range messages {
		r, err := encode(m)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func upstreamRefs(names []string) []snapshot.ObjectRef {
	refs := make([]snapshot.ObjectRef, len(names))
	for i, name := range names {
		refs[i] = objectRef(model.UpstreamKey(name))
	}
	return refs
}

// objectRef converts the key of an object to the form in resources.
func objectRef(k model.Key) snapshot.ObjectRef {
	return snapshot.ObjectRef{Kind: string(k.Kind), Name: k.Name()}
}
