package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// Certificates returns the host names for which a proxy presents the certificates of
// some secrets.
type Certificates func(proxy string, secrets map[string]bool) ([]explain.Use, error)

// The conditions of a secret, one for each proxy, service and host name.
const (
	certificateServed = "CertificateServed"
	certificateBeaten = "CertificateBeaten"
)

// maxUses bounds the conditions of one secret; those of names for which another
// certificate is presented come first.
const maxUses = 20

// addCertificates adds to the status of secrets the names for which their certificates
// are presented.
func (in *Inspector) addCertificates(blocks []*ObjectStatus) error {
	proxies := map[string]map[string]bool{}
	for _, b := range blocks {
		if b.key.Kind != model.KindSecret || in.Certificates == nil {
			continue
		}
		for _, proxy := range b.proxies {
			if proxies[proxy] == nil {
				proxies[proxy] = map[string]bool{}
			}
			proxies[proxy][b.key.Name()] = true
		}
	}
	uses := map[string][]ObjectCondition{} // by secret
	for proxy, secrets := range proxies {
		list, err := in.Certificates(proxy, secrets)
		if err != nil {
			return fmt.Errorf("reading the certificates of proxy %q: %w", proxy, err)
		}
		for _, u := range list {
			name := u.Name
			if name == "" {
				name = "clients that name no host"
			}
			c := ObjectCondition{
				Code: certificateServed, Status: true, Message: fmt.Sprintf("%s on proxy %s: %s", name, proxy, u.Message),
			}
			if !u.Answers {
				c.Code = certificateBeaten
			}
			if u.Service != "" {
				c.Path = model.ProxyServiceKey(proxy, u.Service).Path()
			}
			uses[u.Secret] = append(uses[u.Secret], c)
		}
	}
	for _, b := range blocks {
		if b.key.Kind == model.KindSecret {
			b.Conditions = append(b.Conditions, bounded(uses[b.key.Name()])...)
		}
	}
	return nil
}

// bounded sorts the conditions and limits their number; a last one counts the rest.
func bounded(list []ObjectCondition) []ObjectCondition {
	slices.SortFunc(list, func(a, b ObjectCondition) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	more := len(list) - maxUses
	if more <= 0 {
		return list
	}
	last := list[maxUses]
	last.Path, last.Message = "", fmt.Sprintf("and %d more host names", more)
	return append(list[:maxUses:maxUses], last)
}
