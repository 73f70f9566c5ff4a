package chart_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The output of the chart", func() {
	It("is a whole gateway by default", func() {
		Expect(render("").names()).To(ConsistOf(
			"Deployment/gatehouse-control-plane", "ConfigMap/gatehouse-proxies", "Service/gatehouse-api", "Service/gatehouse-xds",
			"ServiceAccount/gatehouse-control-plane", "ClusterRole/gw-gatehouse-control-plane", "ClusterRoleBinding/gw-gatehouse-control-plane",
			"ClusterRole/gw-gatehouse-control-plane-leases", "ClusterRoleBinding/gw-gatehouse-control-plane-leases",
			"ClusterRole/gw-gatehouse-control-plane-gateway-api", "ClusterRoleBinding/gw-gatehouse-control-plane-gateway-api",
			"ClusterRole/gw-gatehouse-view", "ClusterRole/gw-gatehouse-edit", "ServiceAccount/gatehouse-envoy-gatehouse",
			"Role/gatehouse-control-plane", "RoleBinding/gatehouse-control-plane", "Lease/gatehouse-status-gatehouse",
			"Deployment/gatehouse-envoy-gatehouse", "Service/gatehouse-envoy-gatehouse",
			"Deployment/gatehouse-ratelimit", "Service/gatehouse-ratelimit", "StatefulSet/gatehouse-redis", "Service/gatehouse-redis",
			"PodDisruptionBudget/gatehouse-control-plane", "PodDisruptionBudget/gatehouse-envoy-gatehouse", "PodDisruptionBudget/gatehouse-ratelimit",
			"NetworkPolicy/gatehouse-control-plane", "NetworkPolicy/gatehouse-envoy", "NetworkPolicy/gatehouse-ratelimit", "NetworkPolicy/gatehouse-redis",
			"Secret/gatehouse-ca", "Secret/gatehouse-control-plane-tls", "Secret/gatehouse-envoy-gatehouse-tls", "Secret/gatehouse-ratelimit-tls",
			"Secret/gatehouse-api-token", "Secret/gatehouse-redis",
			"ServiceAccount/gatehouse-secrets", "Role/gatehouse-secrets", "RoleBinding/gatehouse-secrets", "Job/gatehouse-secrets-1", "CronJob/gatehouse-renew",
			"Pod/gatehouse-test",
		))
	})

	It("is small with everything off", func() {
		Expect(render(off).names()).To(ConsistOf(
			"Deployment/gatehouse-control-plane", "ConfigMap/gatehouse-proxies", "Service/gatehouse-api", "Service/gatehouse-xds",
			"Deployment/gatehouse-envoy-gatehouse", "Secret/gatehouse-ca", "Secret/gatehouse-control-plane-tls", "Secret/gatehouse-envoy-gatehouse-tls",
			"Secret/gatehouse-api-token", "ServiceAccount/gatehouse-secrets", "Role/gatehouse-secrets", "RoleBinding/gatehouse-secrets",
			"Job/gatehouse-secrets-1", "CronJob/gatehouse-renew", "Pod/gatehouse-test",
		))
		Expect(render(off).get("Deployment/gatehouse-control-plane").environment()).NotTo(HaveKey("GATEHOUSE_RATELIMIT_ADDRESS"))
	})

	It("has settings for the control plane in mode kubernetes", func() {
		Expect(render("kubernetes: {namespaces: [team-a, team-b]}").get("Deployment/gatehouse-control-plane").environment()).To(And(
			HaveKeyWithValue("GATEHOUSE_MODE", "kubernetes"),
			HaveKeyWithValue("GATEHOUSE_KUBERNETES_PROXIES", "gatehouse"),
			HaveKeyWithValue("GATEHOUSE_KUBERNETES_NAMESPACES", "team-a,team-b"),
			HaveKeyWithValue("GATEHOUSE_RATELIMIT_ADDRESS", "gatehouse-ratelimit.gw.svc:18001"),
			HaveKeyWithValue("GATEHOUSE_XDS_TLS_CLIENT_CA", "/etc/gatehouse/xds/ca.crt"),
			HaveKeyWithValue("POD_NAME", map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}),
			Not(HaveKey("GATEHOUSE_DATABASE_URL")), Not(HaveKey("GATEHOUSE_INSECURE_XDS")), Not(HaveKey("GATEHOUSE_INSECURE_API")),
		))
	})

	It("has settings for the identity provider of the console, if there is one", func() {
		Expect(render("").get("Deployment/gatehouse-control-plane").environment()).NotTo(HaveKey("GATEHOUSE_CONSOLE_OIDC_ISSUER"))
		Expect(render(`controlPlane: {settings: {console-oidc-session: 1h}, console: {oidc: {issuer: "https://id.example.com", clientId: gatehouse, existingSecret: oidc,
  groups: [platform=admin, staff=viewer]}}}`).get("Deployment/gatehouse-control-plane").environment()).To(And(
			HaveKeyWithValue("GATEHOUSE_CONSOLE_OIDC_ISSUER", "https://id.example.com"),
			HaveKeyWithValue("GATEHOUSE_CONSOLE_OIDC_CLIENT_ID", "gatehouse"),
			HaveKeyWithValue("GATEHOUSE_CONSOLE_OIDC_GROUPS", "platform=admin,staff=viewer"),
			HaveKeyWithValue("GATEHOUSE_CONSOLE_OIDC_SESSION", "1h"),
			HaveKeyWithValue("GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET", map[string]any{"secretKeyRef": map[string]any{"name": "oidc", "key": "client-secret"}}),
		))
	})

	It("has settings for the control plane in mode rest", func() {
		list := render(variants()["mode rest"])
		Expect(list.get("Deployment/gatehouse-control-plane").environment()).To(And(
			HaveKeyWithValue("GATEHOUSE_DATABASE_URL", map[string]any{"secretKeyRef": map[string]any{"name": "postgres", "key": "url"}}),
			HaveKeyWithValue("GATEHOUSE_SECRET_KEY_FILE", "/etc/gatehouse/key/secret.key"),
			Not(HaveKey("GATEHOUSE_MODE")), Not(HaveKey("GATEHOUSE_KUBERNETES_PROXIES")),
		))
		Expect(list.names()).NotTo(ContainElement("ConfigMap/gatehouse-proxies"))
		By("keeping the key for the secrets of the database")
		Expect(list.get("Secret/gatehouse-secret-key").at("metadata.annotations.helm|sh/resource-policy")).To(Equal("keep"))
		Expect(list.get("Secret/gatehouse-api-token").at("metadata.annotations")).To(BeNil())
	})

	It("gives Envoys their certificate and time to drain", func() {
		envoy := render("").get("Deployment/gatehouse-envoy-gatehouse")
		Expect(envoy.environment()).To(And(
			HaveKeyWithValue("GATEHOUSE_PROXY", "gatehouse"), HaveKeyWithValue("GATEHOUSE_XDS_ADDR", "gatehouse-xds.gw.svc:18000"),
			HaveKeyWithValue("GATEHOUSE_DRAIN_TIME", "30s"), HaveKeyWithValue("GATEHOUSE_ADMIN_ADDR", "0.0.0.0:9001"), HaveKeyWithValue("GATEHOUSE_MAX_HEAP", "640MiB"),
		))
		Expect(envoy.environment()).To(HaveKeyWithValue("GATEHOUSE_ZONE", map[string]any{
			"fieldRef": map[string]any{"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"},
		}), "which the kube-apiserver copies from the node")
		Expect(render("envoy: {zone: rack-1}").get("Deployment/gatehouse-envoy-gatehouse").environment()).To(HaveKeyWithValue("GATEHOUSE_ZONE", "rack-1"))
		Expect(envoy.at("spec.template.spec.terminationGracePeriodSeconds")).To(BeEquivalentTo(45))
		Expect(envoy.at("spec.template.spec.containers.0.lifecycle.preStop.sleep.seconds")).To(BeEquivalentTo(5))
		Expect(envoy.at("spec.strategy.rollingUpdate")).To(Equal(map[string]any{"maxSurge": float64(1), "maxUnavailable": float64(0)}))
		By("leaving enough room in the node's port")
		Expect(render(variants()["a DaemonSet with host ports"]).get("DaemonSet/gatehouse-envoy-gatehouse").at("spec.updateStrategy.rollingUpdate")).
			To(Equal(map[string]any{"maxSurge": float64(0), "maxUnavailable": float64(1)}))
	})

	It("lets each proxy have its own settings", func() {
		list := render(variants()["two proxies"])
		Expect(list.get("Deployment/gatehouse-control-plane").environment()).To(HaveKeyWithValue("GATEHOUSE_KUBERNETES_PROXIES", "edge,inner"))
		Expect(list.get("ConfigMap/gatehouse-proxies").at("data.proxies|yaml")).To(Equal(`version: 1
proxies:
- name: edge
  http_port: 8080
  https_port: 8443
  listen_ip: "0.0.0.0"
  trusted_hops: 0
  escaped_slashes: redirect
  underscore_headers: reject
  tls_min_version: "1.2"
  http3: true
  alt_svc_port: 443
- name: inner
  http_port: 8000
  https_port: 8443
  listen_ip: "0.0.0.0"
  trusted_hops: 1
  escaped_slashes: redirect
  underscore_headers: reject
  tls_min_version: "1.2"`))
		Expect(list.get("Service/gatehouse-envoy-edge").at("spec.ports.0")).To(Equal(map[string]any{"name": "http", "port": float64(80), "targetPort": "http", "nodePort": float64(30080)}))
		Expect(list.get("Service/gatehouse-envoy-edge").at("spec.ports.2")).To(Equal(map[string]any{
			"name": "http3", "protocol": "UDP", "port": float64(443), "targetPort": "http3", "nodePort": float64(30443),
		}))
		Expect(list.get("Deployment/gatehouse-envoy-edge").at("spec.template.spec.containers.0.ports.2")).To(Equal(map[string]any{
			"name": "http3", "protocol": "UDP", "containerPort": float64(8443),
		}))
		Expect(list.get("Service/gatehouse-envoy-inner").at("spec.ports")).To(HaveLen(1))
		Expect(list.get("Service/gatehouse-envoy-inner").at("spec.externalTrafficPolicy")).To(BeNil())
		Expect(list.get("DaemonSet/gatehouse-envoy-inner").at("spec.replicas")).To(BeNil())
		Expect(list.names()).NotTo(ContainElement("Deployment/gatehouse-envoy-inner"))
		By("giving each one a certificate that names only itself")
		Expect(list.get("Job/gatehouse-secrets-1").at("spec.template.spec.containers.0.args")).To(ContainElements(
			"--proxy=edge=gatehouse-envoy-edge-tls", "--proxy=inner=gatehouse-envoy-inner-tls"))
	})

	It("names images by tag, digest and registry", func() {
		image := func(list objects, name string) any {
			return list.get(name).at("spec.template.spec.containers.0.image")
		}
		list := render("")
		Expect(image(list, "Deployment/gatehouse-control-plane")).To(Equal("gatehouse-control-plane:0.1.0"))
		Expect(image(list, "Deployment/gatehouse-envoy-gatehouse")).To(Equal("gatehouse:0.1.0"))
		Expect(image(list, "StatefulSet/gatehouse-redis")).To(Equal("redis:7.2-bookworm"))
		By("taking the Redis of the local stack, whose tag gets fixes")
		stack, err := os.ReadFile("../../hack/images/public.txt")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(stack)).To(MatchRegexp(`(?m)^redis redis:7\.2-bookworm( |$)`))
		list = render(everything)
		Expect(image(list, "Deployment/edge-gateway-control-plane")).To(Equal("registry.example/team/gatehouse-control-plane:2.0"))
		Expect(image(list, "Deployment/edge-gateway-envoy-gatehouse")).To(Equal("registry.example/team/my-envoy@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"))
		Expect(list.get("Deployment/edge-gateway-ratelimit").at("spec.template.spec.imagePullSecrets")).To(Equal([]any{map[string]any{"name": "pull"}}))
	})

	It("passes on common settings", func() {
		list := render(everything)
		for _, name := range []string{"Deployment/edge-gateway-control-plane", "Deployment/edge-gateway-envoy-gatehouse"} {
			o := list.get(name)
			Expect(o.at("metadata.labels.team")).To(Equal("a"))
			Expect(o.at("metadata.annotations.note")).To(Equal("b"))
			Expect(o.at("spec.template.metadata.labels.tier")).To(Equal("c"))
			Expect(o.at("spec.template.metadata.annotations.note")).To(Equal("d"))
			Expect(o.at("spec.template.spec.nodeSelector.disk")).To(Equal("ssd"))
			Expect(o.at("spec.template.spec.tolerations.0.key")).To(Equal("gateway"))
			Expect(o.at("spec.template.spec.affinity.podAntiAffinity")).To(BeNil())
			Expect(o.at("spec.template.spec.topologySpreadConstraints.0.topologyKey")).To(Equal("rack"))
			Expect(o.at("spec.template.spec.priorityClassName")).To(Equal("system-cluster-critical"))
			Expect(o.environment()).To(HaveKeyWithValue("TZ", "UTC"))
			Expect(o.at("spec.template.spec.containers.0.volumeMounts")).To(ContainElement(map[string]any{"name": "extra", "mountPath": "/extra"}))
		}
		Expect(list.get("Deployment/edge-gateway-control-plane").at("spec.template.spec.containers.0.args")).To(Equal([]any{"serve", "--log-level", "debug"}))
		Expect(list.get("Deployment/edge-gateway-control-plane").environment()).To(And(
			HaveKeyWithValue("GATEHOUSE_CLUSTER_WAIT", "30s"), HaveKeyWithValue("GATEHOUSE_REVISION_KEEP_ENTRIES", "1000")))
		Expect(list.get("Deployment/edge-gateway-envoy-gatehouse").at("spec.template.spec.containers.0.args")).
			To(Equal([]any{"envoy", "--", "--concurrency", "2", "--log-level", "debug"}))
		Expect(list.get("Service/edge-gateway-envoy-gatehouse").at("spec.externalTrafficPolicy")).To(Equal("Cluster"))
	})

	It("gives all objects and pods common labels and annotations, and selects by none of them", func() {
		list := render(everything)
		for _, o := range append(list, list.pods()...) {
			if strings.HasSuffix(o.name(), "extra") || strings.HasSuffix(o.name(), "more") {
				continue // the user's own
			}
			Expect(o.at("metadata.labels.cost-center")).To(Equal("42"), o.name())
			for _, selector := range []string{"spec.selector", "spec.selector.matchLabels", "spec.podSelector.matchLabels"} {
				if labels, has := o.at(selector).(map[string]any); has {
					Expect(labels).NotTo(HaveKey("cost-center"), o.name())
				}
			}
		}
		for _, o := range list {
			if !strings.HasSuffix(o.name(), "extra") && !strings.HasSuffix(o.name(), "more") {
				Expect(o.at("metadata.annotations.owner")).To(Equal("platform"), o.name())
			}
		}
		Expect(list.get("Deployment/edge-gateway-ratelimit").at("spec.template.metadata.annotations.owner")).To(Equal("platform"))
		Expect(list.names()).To(ContainElements("ConfigMap/extra", "ConfigMap/edge-gateway-more"))
	})

	It("has the user's containers, account, IP families and relabelings", func() {
		list := render(everything)
		for _, name := range []string{"Deployment/edge-gateway-control-plane", "Deployment/edge-gateway-envoy-gatehouse"} {
			o := list.get(name)
			Expect(o.at("spec.template.spec.initContainers.0.name")).To(Equal("first"))
			Expect(o.at("spec.template.spec.containers.1.name")).To(Equal("beside"))
			Expect(o.at("spec.template.spec.securityContext")).To(And(
				HaveKeyWithValue("runAsUser", BeEquivalentTo(20001)), HaveKeyWithValue("fsGroup", BeEquivalentTo(20001)), HaveKeyWithValue("runAsNonRoot", true)))
		}
		Expect(list.get("Deployment/edge-gateway-envoy-gatehouse").at("spec.template.spec.serviceAccountName")).To(Equal("edge"))
		Expect(list.get("ServiceAccount/edge").at("metadata.annotations.role")).To(Equal("reader"))
		Expect(render(off).get("Deployment/gatehouse-envoy-gatehouse").at("spec.template.spec.serviceAccountName")).To(Equal("default"))
		for _, o := range list {
			switch o.kind() {
			case "Service":
				Expect(o.at("spec.ipFamilyPolicy")).To(Equal("PreferDualStack"), o.name())
				Expect(o.at("spec.ipFamilies")).To(Equal([]any{"IPv4"}), o.name())
			case "PodMonitor":
				Expect(o.at("spec.podMetricsEndpoints.0.relabelings.0.targetLabel")).To(Equal("cluster"), o.name())
				Expect(o.at("spec.podMetricsEndpoints.0.metricRelabelings.0.action")).To(Equal("drop"), o.name())
			case "ServiceMonitor":
				Expect(o.at("spec.endpoints.0.relabelings.0.targetLabel")).To(Equal("cluster"))
			}
		}
	})

	It("leaves the users of its pods to the platform", func() {
		for _, pod := range render(platform).pods() {
			Expect(pod.at("spec.securityContext")).To(Equal(map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}), pod.name())
		}
	})

	It("tells the control plane which host names a namespace may have", func() {
		Expect(render(variants()["host names of namespaces"]).get("Deployment/gatehouse-control-plane").environment()).To(
			HaveKeyWithValue("GATEHOUSE_KUBERNETES_HOST_NAMES", "*=*.apps.example,team-a=a.example"))
		Expect(render("").get("Deployment/gatehouse-control-plane").environment()).NotTo(HaveKey("GATEHOUSE_KUBERNETES_HOST_NAMES"))
	})

	It("restarts no pod if only the chart version differs", func() {
		for _, pod := range render("").pods() {
			if pod.name() == "pod-gatehouse-test" {
				continue // helm test creates it again each time
			}
			Expect(pod.at("metadata.labels")).NotTo(Or(HaveKey("helm.sh/chart"), HaveKey("app.kubernetes.io/version")), pod.name())
		}
	})

	It("leaves the number of replicas to an autoscaler", func() {
		list := render(variants()["autoscaling"])
		for _, name := range []string{"gatehouse-control-plane", "gatehouse-envoy-gatehouse"} {
			Expect(list.get("Deployment/" + name).at("spec.replicas")).To(BeNil())
			Expect(list.get("HorizontalPodAutoscaler/" + name).at("spec.scaleTargetRef.name")).To(Equal(name))
		}
		Expect(list.get("HorizontalPodAutoscaler/gatehouse-envoy-gatehouse").at("spec.maxReplicas")).To(BeEquivalentTo(50))
	})

	It("requests from cert-manager the names that the xDS port requires", func() {
		list := render(variants()["cert-manager"])
		Expect(list.get("Certificate/gatehouse-envoy-gatehouse-tls").at("spec.uris")).To(Equal([]any{"spiffe://gatehouse/proxy/gatehouse"}))
		Expect(list.get("Certificate/gatehouse-envoy-gatehouse-tls").at("spec.usages")).To(Equal([]any{"digital signature", "client auth"}))
		Expect(list.get("Certificate/gatehouse-ratelimit-tls").at("spec.uris")).To(Equal([]any{"spiffe://gatehouse/ratelimit"}))
		server := list.get("Certificate/gatehouse-control-plane-tls")
		Expect(server.at("spec.dnsNames")).To(ContainElements("gatehouse-xds.gw.svc", "localhost", "control.example"))
		Expect(server.at("spec.ipAddresses")).To(Equal([]any{"10.0.0.1", "fd00::1"}))
		Expect(server.at("spec.usages")).To(Equal([]any{"digital signature", "server auth"}))
		Expect(server.at("spec.issuerRef")).To(Equal(map[string]any{"name": "gatehouse-ca", "kind": "Issuer"}))
		Expect(list.names()).NotTo(ContainElement("CronJob/gatehouse-renew"))
		Expect(render(variants()["an issuer of cert-manager"]).names()).NotTo(ContainElement(HavePrefix("Issuer/")))
	})

	It("opens each port only to those that need it", func() {
		list := render("")
		port := func(name string, i string) any {
			return list.get("NetworkPolicy/" + name).at("spec.ingress." + i + ".ports.0.port")
		}
		from := func(name string, i string) (parts []any) {
			all, _ := list.get("NetworkPolicy/" + name).at("spec.ingress." + i + ".from").([]any)
			for _, one := range all {
				parts = append(parts, object(one.(map[string]any)).at("podSelector.matchLabels.app|kubernetes|io/component"))
			}
			return parts
		}
		Expect(port("gatehouse-control-plane", "0")).To(Equal("xds"))
		Expect(from("gatehouse-control-plane", "0")).To(Equal([]any{"envoy", "ratelimit"}))
		Expect(port("gatehouse-control-plane", "1")).To(Equal("api"))
		Expect(from("gatehouse-control-plane", "1")).To(Equal([]any{"test"}))
		Expect(from("gatehouse-envoy", "0")).To(BeEmpty())
		Expect(port("gatehouse-envoy", "1")).To(BeNil(), "the admin port is for probes")
		Expect(from("gatehouse-ratelimit", "0")).To(Equal([]any{"envoy"}))
		Expect(from("gatehouse-ratelimit", "1")).To(Equal([]any{"control-plane"}))
		Expect(from("gatehouse-redis", "0")).To(Equal([]any{"ratelimit"}))
	})

	It("does not put settings of Services into the environment of its pods", func() {
		for name, text := range variants() {
			for _, pod := range render(text).pods() {
				Expect(pod.at("spec.enableServiceLinks")).To(BeFalse(), "%s: %s", name, pod.name())
			}
		}
	})
})
