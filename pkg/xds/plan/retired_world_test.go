package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// keySets are the editions of sets of API keys: 0 means that the set has no keys any more.
type keySets map[string]int

// keyedHost is a host whose routes forward to the clusters and require a key of the set; an empty set
// means none.
func keyedHost(name, set string, clusters ...*snapshot.Resource) *snapshot.Parts {
	parts := host(name, clusters...)
	if set == "" {
		return parts
	}
	vh := &routev3.VirtualHost{Name: name, Domains: []string{name + ".test"}}
	routes := []*snapshot.Route{namedRoute("needs " + set)}
	for _, c := range clusters {
		r, err := snapshot.NewRoute(&routev3.Route{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: c.Name}}},
		})
		Expect(err).NotTo(HaveOccurred())
		routes = append(routes, r)
	}
	h, err := snapshot.NewHost(vh, routes, service(name), snapshot.Needs{Parts: []snapshot.Part{{Extension: "keys", Name: set}}})
	Expect(err).NotTo(HaveOccurred())
	parts.Host = h
	return parts
}

// keyedWorld makes a snapshot with a list of the sets that its hosts require. had are sets that hosts
// required before.
func keyedWorld(revision int64, sets keySets, had []string, hosts ...*snapshot.Parts) *snapshot.Snapshot {
	head, err := snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, unavailable(), nil)
	Expect(err).NotTo(HaveOccurred())
	b := snapshot.NewBuilder(head, nil)
	needed := map[string]bool{}
	for _, h := range hosts {
		b.SetHost(h.Host.Name, h)
		for _, p := range h.Host.Parts {
			needed[p.Name] = true
		}
	}
	content := maps.Clone(sets)
	wanted := slices.Sorted(maps.Keys(needed))
	others := slices.DeleteFunc(slices.Clone(had), func(set string) bool { return needed[set] || content[set] == 0 })
	slices.Sort(others)
	join := func(parts []string) (*snapshot.Resource, error) { return keyList(content, parts) }
	list, err := join(wanted)
	Expect(err).NotTo(HaveOccurred())
	b.SetListeners([]*snapshot.Resource{listener("http")}, snapshot.Named{
		Extensions: []*snapshot.Resource{list}, Lists: []*snapshot.List{snapshot.NewList("keys", wanted, slices.Compact(others), join)},
	})
	return b.Snapshot(revision)
}

func keyList(content keySets, sets []string) (*snapshot.Resource, error) {
	var lines []string
	for _, set := range sets {
		if content[set] > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", set, content[set]))
		}
	}
	config, err := anypb.New(wrapperspb.String(strings.Join(lines, "\n")))
	if err != nil {
		return nil, err
	}
	return snapshot.NewExtension(&corev3.TypedExtensionConfig{Name: "keys", TypedConfig: config})
}

// readKeys decodes a list: the editions of its sets.
func readKeys(r *snapshot.Resource) keySets {
	var e corev3.TypedExtensionConfig
	var lines wrapperspb.StringValue
	Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
	Expect(e.GetTypedConfig().UnmarshalTo(&lines)).To(Succeed())
	sets := keySets{}
	for line := range strings.Lines(lines.GetValue()) {
		var set string
		var edition int
		_, err := fmt.Sscan(line, &set, &edition)
		Expect(err).NotTo(HaveOccurred())
		sets[set] = edition
	}
	return sets
}

// readRequired decodes a route configuration: the set that each host requires, or "".
func readRequired(r *snapshot.Resource) map[string]string {
	required := map[string]string{}
	var rc routev3.RouteConfiguration
	Expect(r.Body.UnmarshalTo(&rc)).To(Succeed())
	for _, vh := range rc.GetVirtualHosts() {
		required[vh.GetName()] = ""
		for _, route := range vh.GetRoutes() {
			if set, ok := strings.CutPrefix(route.GetName(), "needs "); ok {
				required[vh.GetName()] = set
			}
		}
	}
	return required
}
