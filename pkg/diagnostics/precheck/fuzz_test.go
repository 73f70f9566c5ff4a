package precheck_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// FuzzRoute reads any text as the configuration of a route. A valid
// configuration is stored and shown unchanged, and compiles, or is refused with
// a reason.
func FuzzRoute(f *testing.F) {
	for _, seed := range []string{
		`{}`, ``, `null`, `[]`, `{"match":"exact"}`, `{"match":"regex","match":"exact"}`, `{"MATCH":"segment"}`, `{"match":"template","rewrite":{"template":"/{id}"}}`,
		`{"methods":["GET","get"," "]}`, `{"headers":[{"name":"x-a","exact":"b","invert":true},{"name":":path","prefix":"/"}]}`,
		`{"headers":[{"name":"x","regex":"(?i)^a+$"}],"query":[{"name":"q"}]}`, `{"query":[{"name":"q","regex":"("}]}`,
		`{"rewrite":{"prefix":"/x","host":"a.example"}}`, `{"rewrite":{"regex":"^/(.*)$","substitution":"/\\1"}}`, `{"rewrite":{"regex":"a","substitution":"\\2"}}`,
		`{"timeouts":{"request":"1h","idle":"0s"}}`, `{"timeouts":{"request":"-1ns"}}`, `{"timeouts":{"request":"9223372036s"}}`,
		`{"retries":{"attempts":3,"on":["5xx","reset"],"per_try":"1ms"}}`, `{"retries":{"attempts":-1}}`, `{"websocket":true}`, `{"websocket":null}`,
		`{"headers":[{"name":"\ud800"}]}`, `{"methods":[]} x`,
	} {
		f.Add("/", seed)
		f.Add("/a.*", seed)
		f.Add("/users/{id}", seed)
	}
	f.Fuzz(func(t *testing.T, prefix, text string) {
		config, err := model.ParseRouteConfig(text)
		if err != nil {
			return
		}
		route := &model.Route{Service: "s", Name: "r", Prefix: prefix, Config: config}
		if len(route.Validate()) > 0 {
			return
		}
		stored, err := config.Value()
		if err != nil {
			t.Fatal(err)
		}
		var read model.RouteConfig
		if err := read.Scan(stored); err != nil || !reflect.DeepEqual(first(json.Marshal(read)), first(json.Marshal(config))) {
			t.Fatalf("stored %q, read %+v, error %v", stored, read, err)
		}
		again, err := model.ParseRouteConfig(string(first(json.Marshal(config))))
		if err != nil || !reflect.DeepEqual(first(json.Marshal(again)), first(json.Marshal(config))) {
			t.Fatalf("shown as %q, read %+v, error %v", first(json.Marshal(config)), again, err)
		}
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = "u", "192.0.2.1", 80
		if err := pipeline.NewRouteRefusals().Of(&model.RouteTree{Route: route, Upstreams: []*model.Upstream{u}}); err != nil && err.Error() == "" {
			t.Fatal("refused without a reason")
		}
	})
}

func first(b []byte, err error) []byte {
	if err != nil {
		return []byte(err.Error())
	}
	return b
}
