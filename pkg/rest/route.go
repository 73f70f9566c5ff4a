package rest

import (
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addRoute() {
	addObjects(s, kind[*model.Route]{
		kind: model.KindRoute, base: "/service/:service/route",
		fields:   routeFields(),
		make:     func(n names, _ []value) *model.Route { return &model.Route{Service: n[model.KindService]} },
		at:       routeAt,
		siblings: func(n names) store.Query { return store.Query{Service: n[model.KindService]} },
	})
}

func routeFields() []field[*model.Route] {
	return []field[*model.Route]{
		need(text("Route_Name", func(o *model.Route) *string { return &o.Name })),
		need(text("Route_prefix", func(o *model.Route) *string { return &o.Prefix })),
		{name: "Route_config", set: setRouteConfig},
	}
}

// setRouteConfig takes JSON as text or, in a JSON body, the object itself.
func setRouteConfig(o *model.Route, v value) error {
	if v.shape != isText && v.shape != isObject {
		return fmt.Errorf("must be a JSON object, or text that holds one, not %s", v.shape)
	}
	if err := checkJSON(v.text); err != nil {
		return err
	}
	config, err := model.ParseRouteConfig(v.text)
	if err != nil {
		return err
	}
	o.Config = config
	return nil
}

func routeAt(n names) []model.Key {
	return append(serviceAt(n), model.RouteKey(n[model.KindService], n[model.KindRoute]))
}
