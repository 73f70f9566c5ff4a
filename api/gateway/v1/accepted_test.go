package v1_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	v1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/api/gateway/v1beta1"
)

// get reads an object in one version of the API.
func get(ctx context.Context, resource, version, namespace, name string) []byte {
	GinkgoHelper()
	out, err := api.Kubectl(ctx, "get", resource+"."+version+".gateway.gatehouse.dev", "--namespace", namespace, name, "--output", "json")
	Expect(err).NotTo(HaveOccurred())
	return []byte(out)
}

// specOf is the spec of an object in YAML or JSON.
func specOf(object []byte) any {
	GinkgoHelper()
	var o map[string]any
	Expect(yaml.Unmarshal(object, &o)).To(Succeed())
	return o["spec"]
}

var _ = Describe("The API server", func() {
	It("accepts the documents of the specification as written, and serves them in both versions", func(ctx context.Context) {
		Expect(api.Namespace(ctx, "shop")).To(Succeed())
		Expect(api.Apply(ctx, readFile("specification.yaml"))).To(Equal(`globalconfig.gateway.gatehouse.dev/global-oauth created
service/idp created
gatewayhost.gateway.gatehouse.dev/shop created
globalconfig.gateway.gatehouse.dev/global-ratelimit created
routefilter.gateway.gatehouse.dev/ratelimit created
`))
		written := map[string]any{}
		for _, text := range strings.Split(readFile("specification.yaml"), "---\n") {
			var o struct {
				Kind     string
				Metadata struct{ Name string }
			}
			Expect(yaml.Unmarshal([]byte(text), &o)).To(Succeed())
			written[o.Kind+"/"+o.Metadata.Name] = specOf([]byte(text))
		}
		for _, o := range []struct{ resource, kind, name string }{
			{"globalconfigs", "GlobalConfig", "global-oauth"}, {"globalconfigs", "GlobalConfig", "global-ratelimit"},
			{"gatewayhosts", "GatewayHost", "shop"}, {"routefilters", "RouteFilter", "ratelimit"},
		} {
			for _, version := range []string{"v1", "v1beta1"} {
				Expect(specOf(get(ctx, o.resource, version, "shop", o.name))).To(Equal(written[o.kind+"/"+o.name]), "%s in %s", o.name, version)
			}
		}
	}, NodeTimeout(time.Minute))

	It("accepts the examples of docs/kubernetes.md", func(ctx context.Context) {
		text, err := os.ReadFile("../../../docs/kubernetes.md")
		Expect(err).NotTo(HaveOccurred())
		_, sections, _ := strings.Cut(string(text), "\n## Hosts and routes\n")
		sections, _, _ = strings.Cut(sections, "\n## What the conditions say\n")
		for _, namespace := range []string{"shop", "catalog", "gatehouse"} {
			Expect(api.Namespace(ctx, "docs-"+namespace)).To(Succeed())
			sections = strings.ReplaceAll(sections, "\n  namespace: "+namespace+"\n", "\n  namespace: docs-"+namespace+"\n")
		}
		for _, block := range strings.Split(sections, "```yaml\n")[1:] {
			example, _, _ := strings.Cut(block, "```")
			Expect(api.Apply(ctx, example, "--dry-run=server")).NotTo(BeEmpty())
		}
	}, NodeTimeout(time.Minute))

	It("keeps every field in both versions, as do the Go types", func(ctx context.Context) {
		text := readFile("everything.yaml")
		beta := strings.Replace(text, "gatehouse.dev/v1\n", "gatehouse.dev/v1beta1\n", 1)
		for name, object := range map[string]string{"stable": text, "beta": beta} {
			Expect(api.Namespace(ctx, name)).To(Succeed())
			Expect(api.Apply(ctx, object, "--namespace", name)).To(Equal("gatewayhost.gateway.gatehouse.dev/everything created\n"))
			for _, version := range []string{"v1", "v1beta1"} {
				got := get(ctx, "gatewayhosts", version, name, "everything")
				Expect(specOf(got)).To(Equal(specOf([]byte(text))))
				var host any = &v1.GatewayHost{}
				if version == "v1beta1" {
					host = &v1beta1.GatewayHost{}
				}
				Expect(json.Unmarshal(got, host)).To(Succeed())
				again, err := json.Marshal(host)
				Expect(err).NotTo(HaveOccurred())
				Expect(specOf(again)).To(Equal(specOf([]byte(text))))
			}
		}
	}, NodeTimeout(time.Minute))

	It("shows host, proxy, readiness, reason and age, and keeps spec and status apart", func(ctx context.Context) {
		Expect(api.Namespace(ctx, "columns")).To(Succeed())
		Expect(api.Apply(ctx, `
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop, namespace: columns}
spec: {virtualhost: {fqdn: shop.example.com}}
status: {proxy: ignored}
---
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: limit, namespace: columns}
spec: {type: route_filter_ratelimit, routeFilterConfig: {config: "{}"}}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: limits, namespace: columns}
spec: {type: globalconfig_ratelimit, config: "{}", proxy: edge}
---
apiVersion: gateway.gatehouse.dev/v1
kind: ReferenceGrant
metadata: {name: shop, namespace: columns}
spec: {from: [{kind: GatewayHost, namespace: shop}], to: [{kind: Secret}, {kind: Service, name: blue}]}
`)).NotTo(BeEmpty())
		status := `{"status": {"observedGeneration": 1, "proxy": "gatehouse", "envoys": 2, "conditions": [
			{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			{"type": "Programmed", "status": "False", "reason": "Waiting", "message": "1 of 2 Envoys has it", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
		for _, o := range []string{"gwh/shop", "gwf/limit", "gwc/limits"} {
			Expect(api.Kubectl(ctx, "patch", o, "--namespace", "columns", "--subresource", "status", "--type", "merge", "--patch", status)).To(ContainSubstring("patched"))
		}
		rows := func(args ...string) []string {
			GinkgoHelper()
			out, err := api.Kubectl(ctx, append([]string{"get", "--namespace", "columns"}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			var lines []string
			for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
				fields := strings.Fields(line)
				lines = append(lines, strings.Join(fields[:len(fields)-1], " ")) // without the age
			}
			return lines
		}
		Expect(rows("gwh")).To(Equal([]string{"NAME HOST PROXY READY REASON", "shop shop.example.com gatehouse False Waiting"}))
		Expect(rows("gwf")).To(Equal([]string{"NAME TYPE ACCEPTED READY REASON", "limit route_filter_ratelimit True False Waiting"}))
		Expect(rows("gwc")).To(Equal([]string{"NAME TYPE PROXY ACCEPTED READY REASON", "limits globalconfig_ratelimit edge True False Waiting"}))
		Expect(rows("gwrg")).To(Equal([]string{"NAME", "shop"}))
		Expect(api.Kubectl(ctx, "get", "gatehouse", "--namespace", "columns", "--output", "name")).To(Equal(`gatewayhost.gateway.gatehouse.dev/shop
globalconfig.gateway.gatehouse.dev/limits
referencegrant.gateway.gatehouse.dev/shop
routefilter.gateway.gatehouse.dev/limit
`))
		Expect(api.Kubectl(ctx, "get", "gwh", "shop", "--namespace", "columns", "--output", "jsonpath={.metadata.generation} {.status.proxy}")).To(Equal("1 gatehouse"))
	}, NodeTimeout(time.Minute))
})
