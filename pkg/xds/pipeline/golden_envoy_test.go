package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// static is what one Envoy reads as a static bootstrap: the resources of the proxies of some cases. Clusters and
// secrets are by name, since an Envoy has only one of a name.
type static struct {
	cases             []string
	listeners         []any
	clusters, secrets map[string]any
}

// refusedByEnvoy returns what a real Envoy says against cases, by their name. Most of the time of an Envoy is its
// start, so it reads all cases at once whose clusters and secrets agree. It does not check that the clusters of a route
// or of a filter exist, so no case hides what another one lacks. If it refuses something, it reads each case by itself.
var refusedByEnvoy = sync.OnceValue(func() map[string]string {
	refused := map[string]string{}
	var groups []*static
	add := func(s *static) {
		for _, g := range groups {
			if agree(g.clusters, s.clusters) && agree(g.secrets, s.secrets) {
				g.add(s)
				return
			}
		}
		groups = append(groups, s)
	}
	singles := map[string][]*static{}
	for _, dir := range caseDirs() {
		envoys := buildCase(dir).envoy
		for _, proxy := range slices.Sorted(maps.Keys(envoys)) {
			name := filepath.Base(dir)
			singles[name] = append(singles[name], staticOf(name, proxy, envoys[proxy]))
			add(staticOf(name, proxy, envoys[proxy]))
		}
	}
	for _, g := range groups {
		said := g.refusal()
		if said == "" {
			continue
		}
		guilty := false
		for _, name := range g.cases {
			for _, s := range singles[name] {
				if alone := s.refusal(); alone != "" {
					refused[name], guilty = alone, true
				}
			}
		}
		if !guilty {
			refused[g.cases[0]] = fmt.Sprintf("%v, together: %s", g.cases, said)
		}
	}
	return refused
})

// agree reports whether two maps have nothing different under one key.
func agree(a, b map[string]any) bool {
	for key, value := range b {
		if other, there := a[key]; there && asJSON(other) != asJSON(value) {
			return false
		}
	}
	return true
}

func (s *static) add(other *static) {
	s.cases = append(s.cases, other.cases...)
	s.listeners = append(s.listeners, other.listeners...)
	maps.Copy(s.clusters, other.clusters)
	maps.Copy(s.secrets, other.secrets)
}

// takesRoutes matches the part of a listener that sets where its routes come from.
var takesRoutes = regexp.MustCompile(`"rds": ?\{"config_source": ?.*?"route_config_name": ?"gatehouse"\}`)

// takesSecrets matches the part of a cluster that sets where its secrets come from.
var takesSecrets = regexp.MustCompile(`, ?"sds_config": ?{[^{}]*({[^{}]*}[^{}]*)*}`)

func staticOf(name, proxy string, r resources) *static {
	s := &static{cases: []string{name}, clusters: map[string]any{}, secrets: map[string]any{}}
	for _, l := range r.Listeners {
		text := takesRoutes.ReplaceAllLiteralString(string(l), `"route_config":`+string(r.RouteConfiguration))
		Expect(text).NotTo(ContainSubstring(`"rds"`), "the listener takes its routes inline for the check")
		listener := plain(json.RawMessage(text)).(map[string]any)
		listener["name"] = fmt.Sprintf("%s/%s/%s", name, proxy, listener["name"])
		s.listeners = append(s.listeners, listener)
	}
	// Secrets of listeners come from a control plane, which this Envoy does not ask.
	// Those of clusters are included.
	for _, c := range r.Clusters {
		cluster := plain(json.RawMessage(takesSecrets.ReplaceAllLiteralString(string(c), "")))
		s.clusters[nameOf(cluster)] = cluster
	}
	for _, secret := range r.Secrets {
		s.secrets[nameOf(plain(secret))] = plain(secret)
	}
	return s
}

// refusal returns what a real Envoy says against the resources; empty if it accepts them.
func (s *static) refusal() string {
	binary := must(testkit.Binary("envoy"))
	for i, l := range s.listeners { // listeners of one Envoy have different addresses
		l.(map[string]any)["address"].(map[string]any)["socket_address"].(map[string]any)["port_value"] = 10000 + i
	}
	clusters := slices.Collect(maps.Values(s.clusters))
	ads := json.RawMessage(`{"name":"gatehouse_xds","type":"STATIC","load_assignment":{"cluster_name":"gatehouse_xds"}}`)
	bootstrap := must(json.Marshal(map[string]any{
		"node": map[string]any{"id": "gw", "cluster": "gw"},
		"dynamic_resources": json.RawMessage(
			`{"ads_config":{"api_type":"DELTA_GRPC","transport_api_version":"V3",` +
				`"grpc_services":[{"envoy_grpc":{"cluster_name":"gatehouse_xds"}}]}}`),
		"static_resources": map[string]any{
			"listeners": s.listeners, "clusters": append(clusters, ads), "secrets": slices.Collect(maps.Values(s.secrets)),
		},
	}))
	path := filepath.Join(GinkgoT().TempDir(), "envoy.json")
	Expect(os.WriteFile(path, bootstrap, 0o600)).To(Succeed())
	command := exec.Command(binary, "--mode", "validate", "-c", path, "-l", "warning") //nolint:gosec // the pinned Envoy
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s: %s", err, out)
	}
	return ""
}
