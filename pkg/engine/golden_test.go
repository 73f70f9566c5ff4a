package engine_test

import (
	"encoding/json"
	"fmt"
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

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/engine"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// A case is one chain: in.yaml is compiled to ir.yaml and conditions.yaml, and
// what ir.yaml says is translated to envoy/<proxy>.yaml.

// input is what in.yaml holds: objects by kind, in the form of the REST API.
// IDs follow the order.
type input map[model.Kind][]json.RawMessage

func readInput(path string) model.Change {
	text, err := os.ReadFile(path) //nolint:gosec // a file of this test
	Expect(err).NotTo(HaveOccurred())
	var in input
	Expect(yaml.UnmarshalStrict(text, &in)).To(Succeed())
	change := model.Change{Revision: 1, Full: true}
	for _, kind := range model.Kinds() {
		for i, raw := range in[kind] {
			obj := model.New(kind)
			Expect(json.Unmarshal(raw, obj)).To(Succeed())
			*obj.Meta().ID = int64(i + 1)
			Expect(obj.Validate()).To(BeEmpty(), "%s", raw)
			change.Entries = append(change.Entries, model.Entry{Key: obj.Key(), Object: obj})
		}
	}
	return change
}

// compiled is the ir of every proxy, straight from the pure functions.
func compiled(change model.Change, settings compile.Settings) []ir.Gateway {
	config := model.NewConfig()
	config.Apply(change)
	var gateways []ir.Gateway
	for _, e := range change.Entries {
		p, ok := e.Object.(*model.Proxy)
		if !ok {
			continue
		}
		g := ir.Gateway{Name: p.Name}
		names := slices.Clone(config.Proxy(p.Name).Services)
		slices.Sort(names)
		for _, s := range names {
			g.Hosts = append(g.Hosts, compile.Host(config.Service(s), func(t *model.RouteTree) *ir.Route {
				r, _ := compile.Route(t, egress.Lists{})
				return r
			}))
		}
		var domains []string
		for _, h := range g.Hosts {
			domains = append(domains, compile.Domains(h)...)
		}
		slices.Sort(domains)
		tree := config.Proxy(p.Name)
		g.Listener = compile.Listener(tree, settings, compile.RatesOf(tree, slices.Compact(domains), compile.ReadRates))
		gateways = append(gateways, g)
	}
	return gateways
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

// expectHostsOf checks that the hosts of the snapshot are what the written ir
// says, but for those that are left out or quarantined.
func expectHostsOf(s *snapshot.Snapshot, g ir.Gateway, except []string) {
	var rc routev3.RouteConfiguration
	Expect(s.Routes(s.Hosts).Body.UnmarshalTo(&rc)).To(Succeed())
	var have, want []string
	for _, vh := range rc.GetVirtualHosts() {
		if slices.Contains(except, vh.GetName()) {
			continue
		}
		have = append(have, prototext(vh))
	}
	for _, h := range g.Hosts {
		if slices.Contains(except, h.Name) {
			continue
		}
		vh := translate.VirtualHost(h)
		for _, r := range h.Routes {
			vh.Routes = append(vh.Routes, translate.Route(r))
		}
		want = append(want, prototext(vh))
	}
	Expect(have).To(Equal(want))
}

func prototext(m proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// golden compares a value with a file, or writes it.
func golden(path string, value any) {
	text, err := yaml.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	if *update {
		Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
		Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // a file of this test
	Expect(err).NotTo(HaveOccurred(), "run `make golden` and look at what it writes")
	Expect(string(text)).To(Equal(string(want)), "of %s; if it is right, run `make golden`", path)
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

var _ = Describe("golden case", func() {
	inputs, err := filepath.Glob("testdata/cases/*/in.yaml")
	if err != nil || len(inputs) == 0 {
		panic(fmt.Sprintf("no golden cases: %v", err))
	}
	for _, in := range inputs {
		dir := filepath.Dir(in)
		It(filepath.Base(dir), func() {
			change := readInput(in)
			settings := compile.Settings{AccessLog: true}
			if strings.HasPrefix(filepath.Base(dir), "rate-limit") {
				settings.RateLimitSocket = "/run/gatehouse/ratelimit.sock"
			}
			build, err := engine.NewBuild(settings)
			Expect(err).NotTo(HaveOccurred())
			result := build.Apply(change)

			if *update {
				Expect(os.RemoveAll(filepath.Join(dir, "envoy"))).To(Succeed())
			}
			golden(filepath.Join(dir, "ir.yaml"), compiled(change, settings))
			conditions := map[string][]model.Condition{}
			var except []string
			for _, list := range result.Conditions {
				for _, c := range list {
					conditions[c.Key.Path()] = append(conditions[c.Key.Path()], c)
					if c.Code == model.HostConflict {
						except = append(except, filepath.Base(c.Key.Name))
					}
					if c.Key.Kind == model.KindServiceFilter { // closed: its golden file shows the 503
						except = append(except, filepath.Dir(c.Key.Name))
					}
				}
			}
			golden(filepath.Join(dir, "conditions.yaml"), conditions)

			var written []ir.Gateway
			text, err := os.ReadFile(filepath.Join(dir, "ir.yaml")) //nolint:gosec // a file of this test
			Expect(err).NotTo(HaveOccurred())
			Expect(yaml.UnmarshalStrict(text, &written)).To(Succeed())
			var files []string
			for _, g := range written {
				s := result.Snapshots[g.Name]
				expectHostsOf(s, g, except)
				file := filepath.Join(dir, "envoy", g.Name+".yaml")
				golden(file, readable(s))
				acceptedByEnvoy(readable(s))
				files = append(files, file)
			}
			slices.Sort(files)
			there, err := filepath.Glob(filepath.Join(dir, "envoy", "*"))
			Expect(err).NotTo(HaveOccurred())
			Expect(there).To(Equal(files), "there are stale files; run `make golden`")
		})
	}
})
