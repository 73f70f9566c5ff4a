package compile

import (
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func addRefusalPage(l *ir.Listener, t *model.ProxyTree, _ Settings, _ ir.Needs) {
	l.RefusalPage, _ = RefusalPage(t)
}

// RefusalPage returns the page for browsers whose requests a proxy refuses; empty means the built-in one. The first
// global config by name applies. The conditions say why the others do not.
func RefusalPage(t *model.ProxyTree) (html string, conditions []model.Condition) {
	first := ""
	for _, g := range t.GlobalConfigs {
		if g.Type != model.GlobalConfigRefusals {
			continue
		}
		c, ok := g.Spec.(*model.RefusalsConfig)
		var err error
		switch {
		case first != "":
			err = fmt.Errorf("proxy %s has the page of globalconfig %s, and not this one", t.Proxy.Name, first)
		case !ok || g.Fault != nil:
			err = fmt.Errorf("the page is not used: %w", unreadable(g))
		default:
			html = c.HTML
		}
		if first == "" {
			first = g.Name
		}
		if err != nil {
			conditions = append(conditions, model.Condition{Key: g.Key(), Code: model.Quarantined, Message: err.Error()})
		}
	}
	return html, conditions
}
