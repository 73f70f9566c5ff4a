package chart_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// rights returns the permissions of Roles and ClusterRoles, one line for each resource.
func (list objects) rights() (lines []string) {
	for _, o := range list {
		if o.kind() != "Role" && o.kind() != "ClusterRole" {
			continue
		}
		where := "everywhere"
		if ns, ok := o.at("metadata.namespace").(string); ok {
			where = "in " + ns
		}
		for _, one := range o["rules"].([]any) {
			rule := one.(map[string]any)
			for _, resource := range rule["resources"].([]any) {
				line := fmt.Sprintf("%s %s: %v %s", o.name(), where, words(rule["verbs"]), resource)
				if group := words(rule["apiGroups"]); group != "" {
					line += "." + group
				}
				if names := words(rule["resourceNames"]); names != "" {
					line += " named " + names
				}
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func words(list any) string {
	var all []string
	some, _ := list.([]any)
	for _, one := range some {
		all = append(all, fmt.Sprint(one))
	}
	return strings.Join(all, " ")
}

// automounted returns the pods that get a token of their service account.
func (list objects) automounted() (names []string) {
	for _, o := range list {
		for _, pod := range (objects{o}).pods() {
			if pod.at("spec.automountServiceAccountToken") != false {
				names = append(names, pod.name())
			}
		}
		if o.kind() == "ServiceAccount" {
			Expect(o["automountServiceAccountToken"]).To(BeFalse(), o.name())
		}
	}
	slices.Sort(names)
	return names
}

var _ = Describe("The permissions of the components", func() {
	// docs/kubernetes.md says what each is for.
	const secretsOfJob = "gatehouse-secrets in gw: get update secrets named gatehouse-ca gatehouse-control-plane-tls gatehouse-envoy-gatehouse-tls " +
		"gatehouse-ratelimit-tls gatehouse-api-token gatehouse-redis"
	inRelease := []string{
		"gatehouse-control-plane in gw: create leases.coordination.k8s.io",
		"gatehouse-control-plane in gw: get update leases.coordination.k8s.io named gatehouse-status-gatehouse",
		"gatehouse-control-plane in gw: get list watch create patch delete configmaps",
		"gatehouse-control-plane in gw: list watch endpointslices.discovery.k8s.io",
		secretsOfJob,
		"gw-gatehouse-control-plane-leases everywhere: list leases.coordination.k8s.io",
		"gw-gatehouse-control-plane-gateway-api everywhere: get list watch gatewayclasses.gateway.networking.k8s.io",
		"gw-gatehouse-control-plane-gateway-api everywhere: patch gatewayclasses/status.gateway.networking.k8s.io",
		"gw-gatehouse-control-plane-gateway-api everywhere: get list watch namespaces",
	}
	tenants := []string{
		"gw-gatehouse-edit everywhere: create update patch delete deletecollection consumers.gateway.gatehouse.dev",
		"gw-gatehouse-edit everywhere: create update patch delete deletecollection gatewayhosts.gateway.gatehouse.dev",
		"gw-gatehouse-edit everywhere: create update patch delete deletecollection referencegrants.gateway.gatehouse.dev",
		"gw-gatehouse-edit everywhere: create update patch delete deletecollection routefilters.gateway.gatehouse.dev",
		"gw-gatehouse-view everywhere: get list watch consumers.gateway.gatehouse.dev",
		"gw-gatehouse-view everywhere: get list watch gatewayhosts.gateway.gatehouse.dev",
		"gw-gatehouse-view everywhere: get list watch globalconfigs.gateway.gatehouse.dev",
		"gw-gatehouse-view everywhere: get list watch referencegrants.gateway.gatehouse.dev",
		"gw-gatehouse-view everywhere: get list watch routefilters.gateway.gatehouse.dev",
	}
	reads := func(who string) (lines []string) {
		for _, r := range []string{
			"get list watch endpointslices.discovery.k8s.io",
			"get list watch gatewayhosts.gateway.gatehouse.dev",
			"get list watch consumers.gateway.gatehouse.dev",
			"get list watch gateways.gateway.networking.k8s.io",
			"get list watch globalconfigs.gateway.gatehouse.dev",
			"get list watch listenersets.gateway.networking.k8s.io",
			"get list watch httproutes.gateway.networking.k8s.io",
			"get list watch tlsroutes.gateway.networking.k8s.io",
			"get list watch tcproutes.gateway.networking.k8s.io",
			"get list watch udproutes.gateway.networking.k8s.io",
			"get list watch grpcroutes.gateway.networking.k8s.io",
			"get list watch backendtlspolicies.gateway.networking.k8s.io",
			"get list watch referencegrants.gateway.networking.k8s.io",
			"patch gateways/status.gateway.networking.k8s.io",
			"patch listenersets/status.gateway.networking.k8s.io",
			"patch httproutes/status.gateway.networking.k8s.io",
			"patch tlsroutes/status.gateway.networking.k8s.io",
			"patch tcproutes/status.gateway.networking.k8s.io",
			"patch udproutes/status.gateway.networking.k8s.io",
			"patch grpcroutes/status.gateway.networking.k8s.io",
			"patch backendtlspolicies/status.gateway.networking.k8s.io",
			"get list watch referencegrants.gateway.gatehouse.dev",
			"get list watch routefilters.gateway.gatehouse.dev",
			"get list watch secrets",
			"get list watch configmaps",
			"get list watch services",
			"patch consumers/status.gateway.gatehouse.dev",
			"patch gatewayhosts/status.gateway.gatehouse.dev",
			"patch globalconfigs/status.gateway.gatehouse.dev",
			"patch routefilters/status.gateway.gatehouse.dev",
		} {
			lines = append(lines, who+": "+r)
		}
		return lines
	}

	It("are minimal for all namespaces", func() {
		list := render("")
		Expect(list.rights()).To(ConsistOf(slices.Concat(reads("gw-gatehouse-control-plane everywhere"), inRelease, tenants)))
		Expect(list.automounted()).To(Equal([]string{"cronjob-gatehouse-renew", "deployment-gatehouse-control-plane", "job-gatehouse-secrets-1"}))
	})

	It("are empty outside the specified namespaces", func() {
		list := render("kubernetes: {namespaces: [team-a, team-b]}")
		want := append(reads("gatehouse-control-plane-gw in team-a"), reads("gatehouse-control-plane-gw in team-b")...)
		Expect(list.rights()).To(ConsistOf(slices.Concat(want, inRelease, tenants)))
		Expect(render("kubernetes: {namespaces: [team-a], listLeases: false, gatewayAPI: false}").names()).NotTo(ContainElement(HavePrefix("ClusterRoleBinding")))
		Expect(render("kubernetes: {namespaces: [team-a], aggregateRoles: false, listLeases: false, gatewayAPI: false}").names()).NotTo(ContainElement(HavePrefix("Cluster")))
	})

	It("are asked for: the chart reads all namespaces only if it is told to", func() {
		Expect(refusal("kubernetes: {}")).To(ContainSubstring("kubernetes.namespaces: name the namespaces whose objects and Secrets the gateway may read, such as {shop,payments}; " +
			"or let it read those of all, with kubernetes.allNamespaces=true"))
		Expect(refusal("kubernetes: {namespaces: [team-a], allNamespaces: true}")).To(ContainSubstring(
			"kubernetes.namespaces: either name the namespaces that the gateway reads, or set kubernetes.allNamespaces"))
	})

	It("are added to the cluster's roles for the objects of a namespace's owner, and for no GlobalConfig", func() {
		list := render("")
		view, edit := "rbac|authorization|k8s|io/aggregate-to-view", "rbac|authorization|k8s|io/aggregate-to-"
		Expect(list.get("ClusterRole/gw-gatehouse-view").at("metadata.labels." + view)).To(Equal("true"))
		Expect(list.get("ClusterRole/gw-gatehouse-edit").at("metadata.labels." + view)).To(BeNil())
		for _, role := range []string{"edit", "admin"} {
			Expect(list.get("ClusterRole/gw-gatehouse-edit").at("metadata.labels." + edit + role)).To(Equal("true"))
			Expect(list.get("ClusterRole/gw-gatehouse-view").at("metadata.labels." + edit + role)).To(Equal("true"))
		}
		Expect(list.rights()).NotTo(ContainElement(MatchRegexp("(create|update|delete).* globalconfigs")))
	})

	It("are empty for the Kubernetes API in mode rest, except for the Secrets of the chart", func() {
		list := render(variants()["mode rest"])
		Expect(list.rights()).To(Equal([]string{secretsOfJob + " gatehouse-secret-key"}))
		Expect(list.automounted()).To(Equal([]string{"cronjob-gatehouse-renew", "job-gatehouse-secrets-1"}))
	})

	It("are empty if the Secrets are the user's own", func() {
		list := render(variants()["Secrets of the user's own"])
		Expect(list.rights()).To(BeEmpty())
		Expect(list.automounted()).To(BeEmpty())
		Expect(list.names()).NotTo(ContainElement(HavePrefix("Secret/")))
		Expect(list.names()).NotTo(ContainElement(ContainSubstring("Job/")))
	})

	It("belong to the component's own service account", func() {
		for _, o := range render("") {
			if !strings.HasSuffix(o.kind(), "RoleBinding") {
				continue
			}
			account := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(o.name(), "gw-"), "-leases"), "-gateway-api")
			Expect(o["subjects"]).To(Equal([]any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": "gw"}}))
			Expect(o.at("roleRef.name")).To(Equal(o.name()))
		}
	})
})
