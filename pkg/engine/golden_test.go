package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/engine"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// A case is one chain: the build makes of in.yaml what ir.yaml and
// conditions.yaml show, and what ir.yaml says is translated to
// envoy/<proxy>.yaml. What matters of it stands in expect.yaml, which nobody but
// a human writes.

// expectation is what expect.yaml holds.
type expectation struct {
	// Shows says in a sentence what the case is about.
	Shows string `json:"shows"`
	// Conditions are all conditions, by the path of their object: "CODE", or
	// "CODE: a part of the message".
	Conditions map[string][]string `json:"conditions"`
	// Envoy and IR have paths that begin with a proxy, RateLimits such that begin
	// with a domain as the rate-limit engine has it; see unexpected.
	Envoy      map[string]any `json:"envoy"`
	IR         map[string]any `json:"ir"`
	RateLimits map[string]any `json:"ratelimits"`
}

// resources are the resources of one proxy, readable.
type resources struct {
	Listeners          []json.RawMessage `json:"listeners"`
	Clusters           []json.RawMessage `json:"clusters"`
	RouteConfiguration json.RawMessage   `json:"route_configuration"`
}

func readable(s *snapshot.Snapshot) resources {
	var out resources
	for _, l := range s.Listeners {
		out.Listeners = append(out.Listeners, readableProto(l, &listenerv3.Listener{}))
	}
	for _, c := range s.Clusters {
		out.Clusters = append(out.Clusters, readableProto(c, &clusterv3.Cluster{}))
	}
	out.RouteConfiguration = readableProto(s.Routes(s.Hosts), &routev3.RouteConfiguration{})
	return out
}

func readableProto(r *snapshot.Resource, into proto.Message) json.RawMessage {
	Expect(r.Body.UnmarshalTo(into)).To(Succeed())
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(into)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// must is the value of a call that cannot fail.
func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// expectSent checks that a snapshot holds what the written ir says, and no more.
func expectSent(s *snapshot.Snapshot, g ir.Gateway) {
	have, want := map[string]string{}, map[string]string{}
	for _, r := range slices.Concat(s.Listeners, s.Clusters) {
		have[r.Name] = r.Version
	}
	for _, h := range s.Hosts {
		have["host "+h.Name] = h.Version
	}
	add := func(r *snapshot.Resource, err error) {
		Expect(err).NotTo(HaveOccurred())
		want[r.Name] = r.Version
	}
	if l, err := snapshot.NewListener(must(translate.Listener(g.Listener))); err == nil { // else the proxy has none
		want[l.Name] = l.Version
	}
	for _, c := range must(translate.ListenerResources(g.Listener)).Clusters {
		add(snapshot.NewCluster(c))
	}
	for _, h := range g.Hosts {
		var routes []*snapshot.Route
		for _, r := range h.Routes {
			encoded, err := snapshot.NewRoute(must(translate.Route(r)))
			Expect(err).NotTo(HaveOccurred())
			routes = append(routes, encoded)
			if r.Forward == nil {
				continue
			}
			for _, c := range r.Forward.Clusters {
				add(snapshot.NewCluster(must(translate.Cluster(c.Cluster))))
			}
		}
		host, err := snapshot.NewHost(must(translate.VirtualHost(h)), routes, snapshot.Origin{})
		Expect(err).NotTo(HaveOccurred())
		want["host "+host.Name] = host.Version
	}
	Expect(have).To(Equal(want), "what is sent of proxy %s is not what ir.yaml says", g.Name)
}

// golden compares the generated files of a case with those in its directory, or
// writes them.
func golden(dir string, files map[string]any) {
	there, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	Expect(err).NotTo(HaveOccurred())
	beside, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range slices.Concat(there, beside) {
		name, err := filepath.Rel(dir, path)
		Expect(err).NotTo(HaveOccurred())
		if _, wanted := files[name]; wanted || name == "in.yaml" || name == "expect.yaml" {
			continue
		}
		if *update {
			Expect(os.Remove(path)).To(Succeed())
			continue
		}
		Fail(path + " is stale; run `make golden`")
	}
	for name, value := range files {
		path := filepath.Join(dir, name)
		text, err := yaml.Marshal(value)
		Expect(err).NotTo(HaveOccurred())
		if *update {
			Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
			Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
			continue
		}
		want, err := os.ReadFile(path) //nolint:gosec // a file of this test
		Expect(err).NotTo(HaveOccurred(), "run `make golden` and look at what it writes")
		Expect(string(text)).To(Equal(string(want)), "of %s; if it is right, run `make golden`", path)
	}
}

// takesRoutes is the part of a listener that says where its routes come from.
var takesRoutes = regexp.MustCompile(`"rds": ?\{"config_source": ?.*?"route_config_name": ?"gatehouse"\}`)

// acceptedByEnvoy lets a real Envoy read the resources as a static bootstrap.
func acceptedByEnvoy(r resources) {
	binary, err := testkit.Binary("envoy")
	Expect(err).NotTo(HaveOccurred())
	var listeners []any
	for _, l := range r.Listeners {
		text := takesRoutes.ReplaceAllLiteralString(string(l), `"route_config":`+string(r.RouteConfiguration))
		Expect(text).NotTo(ContainSubstring(`"rds"`), "the listener takes its routes inline for the check")
		listeners = append(listeners, json.RawMessage(text))
	}
	bootstrap, err := json.Marshal(map[string]any{
		"static_resources": map[string]any{"listeners": listeners, "clusters": r.Clusters},
	})
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "envoy.json")
	Expect(os.WriteFile(path, bootstrap, 0o600)).To(Succeed())
	out, err := exec.Command(binary, "--mode", "validate", "-c", path, "-l", "warning").CombinedOutput() //nolint:gosec // the pinned Envoy
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// conditionsByPath are the conditions of a result, by the path of their object.
func conditionsByPath(result engine.Result) map[string][]model.Condition {
	conditions := map[string][]model.Condition{}
	for _, source := range slices.Sorted(maps.Keys(result.Conditions)) {
		for _, c := range result.Conditions[source] {
			conditions[c.Key.Path()] = append(conditions[c.Key.Path()], c)
		}
	}
	return conditions
}

// expectConditions checks that there are the expected conditions and no others.
func expectConditions(have map[string][]model.Condition, want map[string][]string) {
	told := map[string][]string{}
	for path, list := range have {
		for i, c := range list {
			text := c.Code
			if i < len(want[path]) && strings.Contains(want[path][i], ": ") {
				text += ": " + c.Message
				if part := want[path][i]; strings.HasPrefix(part, c.Code+": ") && strings.Contains(c.Message, part[len(c.Code)+2:]) {
					text = part
				}
			}
			told[path] = append(told[path], text)
		}
	}
	if want == nil {
		want = map[string][]string{}
	}
	Expect(told).To(Equal(want), "the conditions in expect.yaml are all that there are")
}

func readExpectation(path string) (want expectation) {
	GinkgoHelper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this test
	Expect(err).NotTo(HaveOccurred(), "write what matters in this case by hand, see CONTRIBUTING.md")
	Expect(yaml.UnmarshalStrict(text, &want)).To(Succeed(), path)
	return want
}

// expectByHand checks what expect.yaml says.
func expectByHand(path string, proxies []string, conditions map[string][]model.Condition, envoy, gateways, rateLimits any) {
	want := readExpectation(path)
	Expect(want.Shows).To(HaveSuffix("."), "%s: shows is a sentence that says what the case is about", path)
	expectConditions(conditions, want.Conditions)
	Expect(slices.Concat(
		unexpected(plain(envoy), want.Envoy, "envoy"),
		unexpected(plain(gateways), want.IR, "ir"),
		unexpected(plain(rateLimits), want.RateLimits, "ratelimits"),
	)).To(BeEmpty(), "of %s", path)
	var named []string
	for at := range want.Envoy {
		proxy, _ := cutPath(at)
		named = append(named, proxy)
	}
	slices.Sort(named)
	Expect(slices.Compact(named)).To(Equal(proxies), "%s says something of the Envoy of each proxy", path)
}

// plain is a value as JSON has it.
func plain(v any) (out any) {
	b, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(b, &out)).To(Succeed())
	return out
}

var _ = Describe("golden case", func() {
	inputs, err := filepath.Glob("testdata/cases/*/in.yaml")
	if err != nil || len(inputs) == 0 {
		panic(fmt.Sprintf("no golden cases: %v", err))
	}
	for _, path := range inputs {
		dir := filepath.Dir(path)
		It(filepath.Base(dir), func() {
			in := readInput(path)
			build, err := engine.NewBuild(in.Settings.compile())
			Expect(err).NotTo(HaveOccurred())
			result := build.Apply(in.Change)
			proxies := slices.Sorted(maps.Keys(result.Snapshots))

			gateways := map[string]*ir.Gateway{}
			for _, proxy := range proxies {
				gateways[proxy] = build.Gateway(proxy)
			}
			files := map[string]any{"ir.yaml": gateways, "conditions.yaml": conditionsByPath(result)}
			rates := map[string][]model.RateLimitRule{}
			for _, d := range result.RateLimits {
				rates[d.Wire()] = d.Rules
			}
			if len(rates) > 0 {
				files["ratelimits.yaml"] = rates
			}
			envoy := map[string]resources{}
			for _, proxy := range proxies {
				envoy[proxy] = readable(result.Snapshots[proxy])
				files["envoy/"+proxy+".yaml"] = envoy[proxy]
			}
			golden(dir, files)

			var written map[string]ir.Gateway
			text, err := os.ReadFile(filepath.Join(dir, "ir.yaml")) //nolint:gosec // a file of this test
			Expect(err).NotTo(HaveOccurred())
			Expect(yaml.UnmarshalStrict(text, &written)).To(Succeed())
			for _, proxy := range proxies {
				expectSent(result.Snapshots[proxy], written[proxy])
				acceptedByEnvoy(envoy[proxy])
			}
			expectByHand(filepath.Join(dir, "expect.yaml"), proxies, conditionsByPath(result), envoy, gateways, rates)
		})
	}
})
