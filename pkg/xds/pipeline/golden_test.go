package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// A case is a directory. The build turns in.yaml into ir.yaml, conditions.yaml,
// ratelimits.yaml and envoy/<proxy>.yaml, which are generated (make golden).
// expect.yaml is written by hand and states what matters.

// expectation is the content of expect.yaml.
type expectation struct {
	// Shows is one or two sentences about what the case shows.
	Shows string `json:"shows"`
	// Conditions lists all conditions by the path of their object, each as "CODE"
	// or "CODE: part of the message".
	Conditions map[string][]string `json:"conditions"`
	// The paths of Envoy and IR start with a proxy, those of RateLimits with a
	// domain's name in the rate-limit engine; see unexpected.
	Envoy      map[string]any `json:"envoy"`
	IR         map[string]any `json:"ir"`
	RateLimits map[string]any `json:"ratelimits"`
}

// resources are the resources of one proxy in readable form.
type resources struct {
	Listeners []json.RawMessage `json:"listeners"`
	Clusters  []json.RawMessage `json:"clusters"`
	// Assignments are the endpoints of discovered clusters.
	Assignments        []json.RawMessage `json:"assignments,omitempty"`
	RouteConfiguration json.RawMessage   `json:"route_configuration"`
	Secrets            []json.RawMessage `json:"secrets,omitempty"`
	// LoginSecrets are the names of login secrets.
	LoginSecrets []string `json:"login_secrets,omitempty"`
	// Providers are the pieces that verify tokens.
	Providers []json.RawMessage `json:"providers,omitempty"`
	// Keys are the API keys, if there are any.
	Keys json.RawMessage `json:"keys,omitempty"`
	// Consumers are the tables of the script, if there are any consumers.
	Consumers string `json:"consumers,omitempty"`
	// RateLimits are the filters of the proxy's own domain, if it has one.
	RateLimits []json.RawMessage `json:"rate_limits,omitempty"`
	// Certificates are the certificates that are looked up.
	Certificates []certificate `json:"certificates,omitempty"`
}

// certificate is the secret that is served for a host name.
type certificate struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

func readable(s *snapshot.Snapshot) resources {
	var out resources
	for _, l := range s.Listeners {
		out.Listeners = append(out.Listeners, readableProto(l, &listenerv3.Listener{}))
	}
	for _, c := range s.Clusters {
		out.Clusters = append(out.Clusters, readableProto(c, &clusterv3.Cluster{}))
	}
	for _, a := range s.Endpoints {
		out.Assignments = append(out.Assignments, readableProto(a, &endpointv3.ClusterLoadAssignment{}))
	}
	for _, r := range s.Secrets {
		if _, ofLogin := snapshot.LoginPair(r.Name); ofLogin {
			out.LoginSecrets = append(out.LoginSecrets, r.Name)
			continue
		}
		out.Secrets = append(out.Secrets, readableProto(r, &tlsv3.Secret{}))
	}
	for _, r := range s.Providers {
		out.Providers = append(out.Providers, readableProto(r, &jwtv3.JwtAuthentication{}))
	}
	out.Keys, out.Consumers, out.RateLimits = readableKeys(s), readableConsumers(s), readableRateLimits(s)
	for _, c := range s.Certificates {
		r, pattern := s.Certificate(c.Name)
		Expect(pattern).To(Equal(c.Name))
		out.Certificates = append(out.Certificates, certificate{c.Name, r.Objects[0].Name})
	}
	out.RouteConfiguration = readableProto(s.Routes(s.Hosts), &routev3.RouteConfiguration{})
	return out
}

// readableKeys returns the API keys of a proxy; nil if it has only the placeholder.
func readableKeys(s *snapshot.Snapshot) json.RawMessage {
	var e corev3.TypedExtensionConfig
	var list basicauthv3.BasicAuth
	for _, r := range s.Extensions {
		if r.Name != seam.KeyFilter {
			continue
		}
		Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
		Expect(e.GetTypedConfig().UnmarshalTo(&list)).To(Succeed())
		if strings.Contains(list.GetUsers().GetInlineString(), "\n") {
			return messageJSON(&list)
		}
	}
	return nil
}

// readableConsumers returns the tables of the script that finds consumers; empty if they are.
func readableConsumers(s *snapshot.Snapshot) string {
	var e corev3.TypedExtensionConfig
	var script luav3.Lua
	for _, r := range s.Extensions {
		if r.Name == credential.ConsumerFilter {
			Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
			Expect(e.GetTypedConfig().UnmarshalTo(&script)).To(Succeed())
		}
	}
	tables, _, _ := strings.Cut(script.GetDefaultSourceCode().GetInlineString(), "-- ")
	if strings.HasPrefix(tables, "local first = {}") {
		return ""
	}
	return tables
}

// readableRateLimits returns the filters of a proxy's own domain; nil if it has none.
func readableRateLimits(s *snapshot.Snapshot) (list []json.RawMessage) {
	for _, r := range s.Extensions {
		var e corev3.TypedExtensionConfig
		var filter ratelimitv3.RateLimit
		message := readableProto(r, &e)
		if e.GetTypedConfig().UnmarshalTo(&filter) == nil && filter.GetFilterEnabled() == nil {
			list = append(list, message)
		}
	}
	return list
}

func readableProto(r *snapshot.Resource, into proto.Message) json.RawMessage {
	Expect(r.Body.UnmarshalTo(into)).To(Succeed())
	return messageJSON(into)
}

func messageJSON(m proto.Message) json.RawMessage {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// must returns the value of a call that cannot fail.
func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// expectSent checks that a snapshot contains what the ir describes, and no
// more.
func expectSent(s *snapshot.Snapshot, g ir.Gateway) {
	have, want := map[string]string{}, map[string]string{}
	for _, r := range slices.Concat(s.Listeners, s.Clusters) {
		have[r.Name] = r.Version
	}
	for _, r := range s.Secrets {
		if _, ofLogin := snapshot.LoginPair(r.Name); ofLogin {
			have[r.Name] = "" // the ir contains no secret
		}
	}
	for _, r := range s.Providers {
		have[r.Name] = ""
	}
	for _, r := range s.Endpoints {
		have["assignment "+r.Name] = r.Version
	}
	for _, h := range s.Hosts {
		if h.Name != credential.KeeperName { // it contains only names
			have["host "+h.Name] = prototext.Format(must(h.VirtualHost()))
		}
	}
	add := func(r *snapshot.Resource, err error) {
		Expect(err).NotTo(HaveOccurred())
		want[r.Name] = r.Version
	}
	listeners := []ir.Listener{g.Listener}
	if g.HTTPS != nil {
		listeners = append(listeners, *g.HTTPS)
	}
	listeners = append(listeners, g.More...)
	if g.HTTP3 != nil {
		listeners = append(listeners, *g.HTTP3)
	}
	for _, listener := range listeners {
		if l, err := snapshot.NewListener(must(translate.Listener(listener))); err == nil { // otherwise the proxy has none
			want[l.Name] = l.Version
		}
		for _, c := range must(translate.ListenerResources(listener)).Clusters {
			add(snapshot.NewCluster(c))
		}
		for _, c := range translate.Collectors(listener) {
			add(snapshot.NewCluster(must(translate.Cluster(c))))
		}
	}
	l4 := slices.Clone(g.L4)
	if g.HTTPS != nil {
		l4 = append(l4, &ir.L4Listener{Services: g.HTTPS.TLS.Passthrough})
	}
	for i, l := range l4 {
		if i < len(g.L4) {
			add(snapshot.NewListener(must(translate.L4Listener(l))))
		}
		for _, s := range l.Services {
			for _, c := range s.Clusters {
				add(snapshot.NewCluster(must(translate.Cluster(c.Cluster))))
			}
		}
	}
	for _, h := range g.Hosts {
		var first, routes []*snapshot.Route
		for _, r := range h.First {
			if r.Bare {
				first = append(first, must(snapshot.NewRoute(must(translate.BareRoute(r, must(translate.VirtualHost(h)))))))
				continue
			}
			first = append(first, must(snapshot.NewRoute(must(translate.Route(r)))))
		}
		by := credential.NamedBy(h)
		for _, c := range by.Clusters {
			add(snapshot.NewCluster(must(translate.Cluster(c))))
		}
		for _, s := range by.Secrets {
			want[s.GetName()] = ""
		}
		for _, p := range by.Providers {
			want[p.Name] = ""
		}
		asked, all := h.Asked, slices.Clone(h.Reserved)
		for _, r := range h.Routes {
			all = append(all, r.All()...)
		}
		for _, r := range append(all, h.Last...) {
			encoded, err := snapshot.NewRoute(must(translate.Route(r)))
			Expect(err).NotTo(HaveOccurred())
			routes = append(routes, encoded)
			asked = append(asked, r.Asked...)
			if r.Forward == nil {
				continue
			}
			for _, c := range r.Forward.Clusters {
				add(snapshot.NewCluster(must(translate.Cluster(c.Cluster))))
			}
		}
		for _, c := range asked {
			add(snapshot.NewCluster(must(translate.Cluster(c))))
		}
		host, err := snapshot.NewHost(must(translate.VirtualHost(h)), routes, snapshot.ObjectRef{})
		Expect(err).NotTo(HaveOccurred())
		want["host "+host.Name] = prototext.Format(must(host.WithFirst(first).VirtualHost()))
	}
	for _, a := range g.Assignments {
		want["assignment "+a.Name] = must(snapshot.NewAssignment(translate.Assignment(a), snapshot.ObjectRef{})).Version
	}
	Expect(have).To(Equal(want), "proxy %s gets something other than its IR says", g.Name)
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

// conditionsByPath returns the conditions of a result by the path of their object.
func conditionsByPath(result pipeline.Result) map[string][]model.Condition {
	conditions := map[string][]model.Condition{}
	for _, source := range slices.Sorted(maps.Keys(result.Conditions)) {
		for _, c := range result.Conditions[source] {
			conditions[c.Key.Path()] = append(conditions[c.Key.Path()], c)
		}
	}
	return conditions
}

// expectConditions checks that the conditions are the expected ones and no others.
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
	Expect(told).To(Equal(want), "expect.yaml lists all conditions")
}

func readExpectation(path string) (want expectation) {
	GinkgoHelper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this test
	Expect(err).NotTo(HaveOccurred(), "write what matters in this case by hand, see CONTRIBUTING.md")
	Expect(yaml.UnmarshalStrict(text, &want)).To(Succeed(), path)
	return want
}

// expectByHand compares a case with its expect.yaml.
func expectByHand(path string, out caseOutput) {
	want := readExpectation(path)
	Expect(want.Shows).To(HaveSuffix("."), "%s: shows is a sentence", path)
	expectConditions(out.conditions, want.Conditions)
	Expect(slices.Concat(
		unexpected(plain(out.envoy), want.Envoy, "envoy"),
		unexpected(plain(out.ir), want.IR, "ir"),
		unexpected(plain(out.rateLimits), want.RateLimits, "ratelimits"),
	)).To(BeEmpty(), "of %s", path)
	var named []string
	for at := range want.Envoy {
		proxy, _ := cutPath(at)
		named = append(named, proxy)
	}
	slices.Sort(named)
	Expect(slices.Compact(named)).To(Equal(slices.Sorted(maps.Keys(out.envoy))), "%s has an expectation for the Envoy of each proxy", path)
}

// plain returns a value as JSON decodes it.
func plain(v any) (out any) {
	b, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(b, &out)).To(Succeed())
	return out
}

// caseDirs lists the directories of the cases.
func caseDirs() []string {
	inputs, err := filepath.Glob("testdata/cases/*/in.yaml")
	if err != nil || len(inputs) == 0 {
		panic(fmt.Sprintf("no golden cases: %v", err))
	}
	for i := range inputs {
		inputs[i] = filepath.Dir(inputs[i])
	}
	return inputs
}

// caseOutput is the output of the build for a case, by proxy or by domain.
type caseOutput struct {
	snapshots  map[string]*snapshot.Snapshot
	conditions map[string][]model.Condition
	ir         map[string]*ir.Gateway
	envoy      map[string]resources
	rateLimits map[string][]model.RateLimitRule
}

// builtCases are the outputs of cases that have been built. Nothing changes them.
var builtCases = map[string]caseOutput{}

func buildCase(dir string) caseOutput {
	GinkgoHelper()
	out, built := builtCases[dir]
	if !built {
		out = buildInput(readInput(filepath.Join(dir, "in.yaml")))
		builtCases[dir] = out
	}
	return out
}

func buildInput(in caseInput) caseOutput {
	GinkgoHelper()
	build, err := pipeline.NewBuild(in.Settings.compile())
	Expect(err).NotTo(HaveOccurred())
	result := build.Apply(in.Change)
	out := caseOutput{
		snapshots: result.Snapshots, conditions: conditionsByPath(result),
		ir: map[string]*ir.Gateway{}, envoy: map[string]resources{}, rateLimits: map[string][]model.RateLimitRule{},
	}
	for proxy, s := range result.Snapshots {
		out.ir[proxy], out.envoy[proxy] = build.Gateway(proxy), readable(s)
	}
	for _, d := range result.RateLimits {
		out.rateLimits[d.Wire()] = d.Descriptors
	}
	return out
}

// files returns the generated files, with differences in the place of listeners.
func (o caseOutput) files() map[string]any {
	files := map[string]any{"ir.yaml": o.ir, "conditions.yaml": o.conditions}
	if len(o.rateLimits) > 0 {
		files["ratelimits.yaml"] = o.rateLimits
	}
	for proxy, r := range o.envoy {
		r.Listeners = likenesses(r.Listeners)
		files["envoy/"+proxy+".yaml"] = r
	}
	return files
}

var _ = Describe("golden case", func() {
	for _, dir := range caseDirs() {
		It(filepath.Base(dir), func() {
			out := buildCase(dir)
			golden(dir, out.files())
			for proxy, s := range out.snapshots {
				expectSent(s, *out.ir[proxy])
			}
			Expect(refusedByEnvoy()[filepath.Base(dir)]).To(BeEmpty())
			expectByHand(filepath.Join(dir, "expect.yaml"), out)
		})
	}
})
