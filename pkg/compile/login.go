package compile

import "github.com/gatehouse-gateway/gatehouse/pkg/model"

// ClosedHost says why a whole service must not be served: a login that is asked
// for and cannot be enforced. Nil means that it may.
func ClosedHost(t *model.ServiceTree) *model.Condition {
	for _, f := range t.Filters {
		if f.Type == model.FilterOIDC {
			return &model.Condition{
				Key: model.ServiceFilterKey(t.Service.Name, f.Name), Code: model.Quarantined,
				Message: "logins are not supported yet, so the service answers 503 and lets nobody in without one",
			}
		}
	}
	return nil
}

// ClosedProxy is ClosedHost for all services of a proxy.
func ClosedProxy(t *model.ProxyTree) *model.Condition {
	for _, g := range t.GlobalConfigs {
		if g.Type == model.GlobalConfigOAuth {
			return &model.Condition{
				Key: g.Key(), Code: model.Quarantined,
				Message: `logins are not supported yet, so proxy "` + t.Proxy.Name + `" serves nothing and lets nobody in without one`,
			}
		}
	}
	return nil
}
