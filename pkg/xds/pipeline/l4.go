package pipeline

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// This file is for services of a mode other than http. They have no host in the route configuration: their parts have
// only the clusters that the listeners name.

// buildL4 builds such a service.
func buildL4(tree *model.ServiceTree, in builder) (*service, []model.Condition) {
	s := &service{}
	var conditions []model.Condition
	s.l4, conditions = compile.L4Service(tree, compile.Pairs(tree, in.settings.Open), in.settings)
	s.parts = &snapshot.Parts{Order: tree.Service.ID}
	if err := s.encodeL4(in); err != nil {
		s.l4.Clusters, s.parts.Named = nil, snapshot.Named{}
		conditions = append(conditions, model.Condition{
			Key: tree.Service.Key(), Code: model.Quarantined, Message: "Envoy would refuse the service: " + err.Error(),
		})
	}
	return s, conditions
}

// encodeL4 encodes the clusters of such a service, and checks what it adds to a listener: others share that.
func (s *service) encodeL4(in builder) error {
	for _, c := range s.l4.Clusters {
		if err := in.clusters.encodeInto(&s.parts.Named, c.Cluster); err != nil {
			return err
		}
	}
	if len(s.l4.Clusters) == 0 {
		return nil
	}
	_, _, err := encodeL4(&ir.L4Listener{Address: "127.0.0.1", Port: 1, UDP: s.l4.UDP, Services: []*ir.L4Service{s.l4}})
	return err
}

// l4Parts returns the parts of such a service on a proxy. What it claims is its name on the HTTPS port, where services
// of mode http have names too; compile.L4Of compares ports.
func l4Parts(s *service, svc *model.Service, p *model.Proxy) *snapshot.Parts {
	parts := *s.parts
	parts.Domain = "service/" + svc.Name // which is no host
	if _, _, own := p.Port(svc); !own {
		parts.Domain = compile.Domain(svc)
	}
	return &parts
}

// l4Of returns what the services of a proxy with another mode than http become.
func (b *Build) l4Of(p *proxy, tree *model.ProxyTree, services []string) compile.L4 {
	lost := p.builder.Conflicts()
	var trees []*model.ServiceTree
	compiled := map[string]*ir.L4Service{}
	for _, name := range services {
		s := b.serviceOn(p, name)
		if s == nil || s.l4 == nil {
			continue
		}
		if _, taken := lost[name]; taken {
			continue
		}
		trees, compiled[name] = append(trees, b.treeOn(p, name)), s.l4
	}
	if len(trees) == 0 {
		return compile.L4{}
	}
	return compile.L4Of(tree, b.settings, trees, compiled)
}

// hasL4 reports whether one of the services has a mode other than http.
func (b *Build) hasL4(p *proxy, services ...string) bool {
	return slices.ContainsFunc(services, func(name string) bool {
		s := b.serviceOn(p, name)
		return s != nil && s.l4 != nil
	})
}

// passes reports whether one of the services gets connections by name.
func (b *Build) passes(p *proxy, services []string) bool {
	return slices.ContainsFunc(services, func(name string) bool {
		s := b.serviceOn(p, name)
		return s != nil && s.l4 != nil && len(s.l4.ServerNames) > 0
	})
}

// encodeL4 encodes a listener and the secrets that it names. The services have its clusters.
func encodeL4(l *ir.L4Listener) (*snapshot.Resource, snapshot.Named, error) {
	var named snapshot.Named
	out, err := translate.L4Listener(l)
	if err != nil {
		return nil, named, err
	}
	for _, secret := range translate.L4Secrets(l) {
		r, err := snapshot.NewSecret(secret, secretRefs(translate.SecretObject(secret.GetName()))...)
		if err != nil {
			return nil, named, err
		}
		named.Secrets = append(named.Secrets, r)
	}
	var from []snapshot.ObjectRef
	for _, s := range l.Services {
		from = append(from, objectRef(model.ServiceKey(s.Name)))
	}
	listener, err := snapshot.NewListener(out, from...)
	if err == nil {
		listener.Clusters = translate.L4Clusters(l.Services)
		named.ForFiles = forFiles(listener, func(f snapshot.Files) (*listenerv3.Listener, error) {
			own := *l
			own.AccessLogs = logsIn(f.Logs, l.AccessLogs)
			return translate.L4Listener(&own)
		})
	}
	return listener, named, err
}
