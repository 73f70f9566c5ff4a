package pipeline

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// followCertificates brings the certificates of a proxy's listener of HTTP/3 to those
// that its Envoys would look up. No other listener has certificates.
func (b *Build) followCertificates(p *proxy, tree *model.ProxyTree) {
	var now []*snapshot.Certificate
	if tree.Proxy.HTTP3 {
		now = p.builder.Certificates()
	}
	if slices.EqualFunc(now, p.certificates, func(a, b *snapshot.Certificate) bool {
		return a == b || a.Name == b.Name && a.Resource().Version == b.Resource().Version
	}) {
		return
	}
	p.certificates = slices.Clone(now)
	b.applyListener(tree, p, tree.Services)
}

// certificatesOf returns certificates with the secrets that they come from.
func certificatesOf(list []*snapshot.Certificate) []ir.Certificate {
	var out []ir.Certificate
	for _, c := range list {
		pair := &ir.Pair{
			Chain: c.Pair().GetCertificateChain().GetInlineString(), Key: c.Pair().GetPrivateKey().GetInlineString(),
		}
		for _, o := range c.Resource().Objects {
			if o.Kind == string(model.KindSecret) {
				pair.Secret = o.Name
			}
		}
		name := c.Name
		if name == snapshot.DefaultCertificate {
			name = ""
		}
		out = append(out, ir.Certificate{Name: name, Pair: pair})
	}
	return out
}
