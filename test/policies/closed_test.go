package policies_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// object is a JSON object.
type object = map[string]any

// mistake changes the messages of a host or route under the name of the filter.
type mistake struct {
	what string
	make func(messages object, filter string)
	// caught says that Envoy reads the message as none, so translate must not make it.
	caught bool
}

func mistakes() []mistake {
	const typed = "type.googleapis.com/envoy."
	return []mistake{
		{"a FilterConfig with an empty message", func(m object, f string) {
			m[f] = object{"@type": typed + "config.route.v3.FilterConfig", "config": object{}}
		}, false},
		{"a message of another type", func(m object, f string) {
			m[f] = object{"@type": typed + "extensions.filters.http.cors.v3.CorsPolicy", "max_age": "1"}
		}, false},
		{"an empty message", func(m object, f string) { m[f] = object{"@type": m[f].(object)["@type"]} }, true},
		{"a misspelt name", func(m object, f string) {
			m[strings.TrimSuffix(f, f[len(f)-1:])] = m[f]
			delete(m, f)
		}, true},
	}
}

// breakMessages sends the Envoys' messages to another Envoy, with mistakes that only a bug in
// the program would make.
func breakMessages(p policy) {
	GinkgoHelper()
	w := newWorld(p)
	messages := 2
	w.attach(onShop, onMoved)
	if p.onRoutes() {
		messages = 3
		w.attach(onRoute)
	}
	if p.twins {
		messages *= 2
	}
	var resources []struct {
		Type, Name string
		Resource   json.RawMessage
	}
	w.read("/proxy/gw/xds", "core_db_xds", &resources)
	for _, m := range mistakes() {
		By(m.what)
		var listener, routes object
		var clusters []any
		extensions := object{}
		for _, r := range resources {
			var of object
			Expect(json.Unmarshal(bytes.ReplaceAll(r.Resource, []byte(`"<redacted>"`), []byte(`"`+p.redacted+`"`)), &of)).To(Succeed())
			switch {
			case r.Type == "listener" && strings.HasPrefix(r.Name, "http-"):
				listener = of
			case r.Type == "route":
				routes = of
			case r.Type == "cluster":
				clusters = append(clusters, of)
			case r.Type == "extension":
				extensions[r.Name] = of["typed_config"]
			}
		}
		changed := 0
		for _, vh := range routes["virtual_hosts"].([]any) {
			for _, of := range append([]any{vh}, vh.(object)["routes"].([]any)...) {
				if messages, _ := of.(object)["typed_per_filter_config"].(object); messages[p.filter] != nil && messages[p.filter].(object)["disabled"] == nil {
					m.make(messages, p.filter)
					changed++
					if m.caught {
						expectCaught(messages)
					}
				}
			}
		}
		Expect(changed).To(Equal(messages), "two services, and a route if possible, have a message")
		if !m.caught {
			port := runStatic(p.filter, listener, routes, extensions, clusters)
			for _, r := range p.requests {
				if r.on != r.off {
					Expect(sendTo(port, r).status).To(Equal(p.denies), "%s: %s", m.what, r.what)
				}
			}
		}
	}
}

// expectCaught checks that the program refuses to make one of the messages.
func expectCaught(messages object) {
	GinkgoHelper()
	var refused []error
	for name := range maps.Keys(messages) {
		text, err := json.Marshal(messages[name])
		Expect(err).NotTo(HaveOccurred())
		var packed anypb.Any
		Expect(protojson.Unmarshal(text, &packed)).To(Succeed())
		m, err := packed.UnmarshalNew()
		Expect(err).NotTo(HaveOccurred())
		if err := translate.CheckOverride(name, m); err != nil {
			refused = append(refused, err)
		}
	}
	Expect(refused).To(HaveLen(1))
}

// runStatic runs an Envoy with the listener, on another port, with one of the filters that are
// switched off. Everything that it would request from a control plane is in it, or removed.
func runStatic(filter string, listener, routes, extensions object, clusters []any) (port int) {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	listener["address"].(object)["socket_address"].(object)["port_value"] = port
	hcm := listener["filter_chains"].([]any)[0].(object)["filters"].([]any)[0].(object)["typed_config"].(object)
	delete(hcm, "rds")
	hcm["route_config"] = routes
	var filters []any
	for _, f := range hcm["http_filters"].([]any) {
		of := f.(object)
		if of["config_discovery"] != nil && of["name"] == filter {
			delete(of, "config_discovery")
			of["typed_config"] = extensions[filter]
		}
		if of["config_discovery"] == nil && (of["disabled"] == nil || of["name"] == filter) {
			filters = append(filters, f)
		}
	}
	hcm["http_filters"] = filters
	bootstrap, err := json.Marshal(object{
		"node": object{"id": "gw", "cluster": "gw"}, "static_resources": object{"listeners": []any{listener}, "clusters": clusters},
		"admin": object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}}},
	})
	Expect(err).NotTo(HaveOccurred())
	e, err := testkit.RunEnvoy(limit(), GinkgoT().TempDir(), string(bootstrap))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return port
}
