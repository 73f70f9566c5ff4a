package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// variants are values by what they are about.
func variants() map[string]string {
	return map[string]string{
		"the defaults": "",
		"mode rest":    "mode: rest\nrest: {database: {existingSecret: postgres}}",
		"Secrets of the user's own": `
mode: rest
rest: {database: {existingSecret: postgres, key: DATABASE_URL}, secretKey: {existingSecret: key, key: k}}
controlPlane: {api: {token: {existingSecret: token, key: t}}}
certificates: {source: existing, existing: {controlPlane: a, proxies: {gatehouse: b}, ratelimit: c}}
redis: {enabled: false, external: {address: "redis.example:6379", tls: true, existingSecret: redis}}`,
		"a DaemonSet with host ports": "envoy: {kind: DaemonSet, hostPorts: {http: 80, https: 443}, service: {enabled: false}}",
		"two proxies": `
proxies:
  - name: edge
    service:
      type: NodePort
      httpNodePort: 30080
      httpsNodePort: 30443
      extraPorts: [{name: db, port: 5432}, {name: dns, port: 53, targetPort: 5353, protocol: UDP}]
    listener: {http3: true}
  - name: inner
    kind: DaemonSet
    listener: {httpPort: 8000, trustedHops: 1}
    service: {type: ClusterIP, httpsPort: 0}`,
		"cert-manager": `
certificates: {source: certManager, hosts: [control.example, 10.0.0.1, "fd00::1"]}
controlPlane: {api: {tls: true}}
monitoring: {enabled: true, labels: {release: prometheus}}`,
		"an issuer of cert-manager": "certificates: {source: certManager, certManager: {issuerRef: {name: ca, kind: ClusterIssuer}}}",
		"autoscaling": `
controlPlane: {autoscaling: {enabled: true}}
envoy: {autoscaling: {enabled: true, maxReplicas: 50}}`,
		"two namespaces":                "kubernetes: {namespaces: [team-a, team-b]}",
		"host names of namespaces":      "kubernetes: {namespaces: [team-a, team-b], hostNames: {team-a: [a.example], '*': ['*.apps.example']}}",
		"users of the platform":         platform,
		"a rate-limit engine elsewhere": "ratelimit: {enabled: false, external: {address: 'limits.example:18001', metrics: 'http://limits.example:18004/metrics'}}",
		"counters on a volume":          "redis: {persistence: {enabled: true, size: 5Gi, storageClassName: fast}}",
		"IPv6":                          "listenAddress: '[::]'",
		"everything that may be off":    off,
		"everything that has a value":   everything,
	}
}

// platform is for platforms that choose the user of a pod, such as OpenShift.
const platform = `
controlPlane: {runAsUser: 0}
envoy: {runAsUser: 0}
ratelimit: {runAsUser: 0}
redis: {runAsUser: 0}`

const off = `
controlPlane: {replicas: 1, podDisruptionBudget: {enabled: false}, serviceAccount: {create: false, name: mine}}
envoy: {replicas: 1, podDisruptionBudget: {enabled: false}, service: {enabled: false}, serviceAccount: {create: false}, maxHeap: ""}
kubernetes: {aggregateRoles: false, listLeases: false, gatewayAPI: false}
ratelimit: {enabled: false}
networkPolicy: {enabled: false}`

const everything = `
nameOverride: gw
fullnameOverride: edge-gateway
commonLabels: {cost-center: "42"}
commonAnnotations: {owner: platform}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: gw}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: {{ include "gatehouse.fullname" . }}-more, namespace: {{ .Release.Namespace }}}
ipFamilyPolicy: PreferDualStack
ipFamilies: [IPv4]
images:
  registry: registry.example/team/
  pullPolicy: Always
  pullSecrets: [{name: pull}]
  controlPlane: {tag: "2.0"}
  envoy: {repository: my-envoy, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
controlPlane: &pod
  labels: {team: a}
  annotations: {note: b}
  podLabels: {tier: c}
  podAnnotations: {note: d}
  nodeSelector: {disk: ssd}
  tolerations: [{key: gateway, operator: Exists}]
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
  topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]
  priorityClassName: system-cluster-critical
  extraEnv: [{name: TZ, value: UTC}]
  extraVolumes: [{name: extra, emptyDir: {}}]
  extraVolumeMounts: [{name: extra, mountPath: /extra}]
  initContainers: [{name: first, image: init.example/a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraContainers: [{name: beside, image: init.example/b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  runAsUser: 20001
  extraArgs: [--log-level, debug]
  settings: {cluster-wait: 30s, revision-keep-entries: 1000}
envoy:
  labels: {team: a}
  annotations: {note: b}
  podLabels: {tier: c}
  podAnnotations: {note: d}
  nodeSelector: {disk: ssd}
  tolerations: [{key: gateway, operator: Exists}]
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
  topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]
  priorityClassName: system-cluster-critical
  extraEnv: [{name: TZ, value: UTC}]
  extraVolumes: [{name: extra, emptyDir: {}}]
  extraVolumeMounts: [{name: extra, mountPath: /extra}]
  initContainers: [{name: first, image: init.example/a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraContainers: [{name: beside, image: init.example/b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  runAsUser: 20001
  extraArgs: [--log-level, debug]
  concurrency: 2
  serviceAccount: {name: edge, annotations: {role: reader}}
  service: {annotations: {pool: public}, loadBalancerClass: example.com/lb, loadBalancerSourceRanges: [192.0.2.0/24], externalTrafficPolicy: Cluster}
ratelimit: {replicas: 1, extraEnv: [{name: TZ, value: UTC}]}
networkPolicy:
  apiFrom: [{namespaceSelector: {matchLabels: {team: operators}}}]
  xdsFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]
  metricsFrom: [{namespaceSelector: {matchLabels: {team: monitoring}}}]
  clientsFrom: [{ipBlock: {cidr: 192.0.2.0/24}}]
monitoring:
  enabled: true
  relabelings: [{targetLabel: cluster, replacement: a}]
  metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: envoy_listener_.*}]
test: {url: "http://gateway.example/"}`

var _ = Describe("The chart", Ordered, func() {
	var kubernetes *testkit.Kubernetes

	BeforeAll(func() {
		ctx := limit()
		var err error
		kubernetes, err = testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(kubernetes.End()).To(Succeed()) })
		Expect(kubernetes.Namespace(ctx, "gw", "pod-security.kubernetes.io/enforce=restricted")).To(Succeed())
		Expect(kubernetes.Namespace(ctx, "team-a")).To(Succeed())
		Expect(kubernetes.Namespace(ctx, "team-b")).To(Succeed())
		foreign, err := os.ReadFile("testdata/crds.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(kubernetes.Apply(ctx, string(foreign), "--server-side")).To(ContainSubstring("podmonitors.monitoring.coreos.com"))
		Expect(kubernetes.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")).NotTo(BeEmpty())
	})

	It("causes no warning of helm lint", func() {
		for name, text := range variants() {
			_, errOut, err := helm("lint", "--strict", "--quiet", chart, values(text))
			Expect(err).NotTo(HaveOccurred(), "%s: %s", name, errOut)
		}
	})

	for _, name := range slices.Sorted(maps.Keys(variants())) {
		text := variants()[name]
		It("is accepted by an API server, and its pods by Pod Security: "+name, func() {
			ctx := limit()
			list := render(text)
			out, err := kubernetes.Apply(ctx, list.yaml(), "--server-side", "--dry-run=server", "--validate=strict")
			Expect(err).NotTo(HaveOccurred(), out)
			if name == "a DaemonSet with host ports" {
				return // the next spec
			}
			out, err = kubernetes.Apply(ctx, list.pods().yaml(), "--server-side", "--dry-run=server", "--validate=strict")
			Expect(err).NotTo(HaveOccurred(), out)
		})
	}

	It("has pods that need a privileged namespace only if they have host ports", func() {
		ctx := limit()
		for _, pod := range render(variants()["a DaemonSet with host ports"]).pods() {
			_, err := kubernetes.Apply(ctx, objects{pod}.yaml(), "--server-side", "--dry-run=server")
			if pod.name() != "daemonset-gatehouse-envoy-gatehouse" {
				Expect(err).NotTo(HaveOccurred())
				continue
			}
			Expect(err).To(MatchError(And(ContainSubstring(`violates PodSecurity "restricted:latest"`), ContainSubstring("hostPort"), Not(ContainSubstring("seccompProfile")))))
		}
	})

	It("installs CustomResourceDefinitions that the API server accepts", func() {
		files, err := filepath.Glob(chart + "/crds/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(5))
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			_, err = kubernetes.Apply(limit(), string(text), "--server-side", "--dry-run=server", "--validate=strict")
			Expect(err).NotTo(HaveOccurred(), file)
		}
	})

	It("is refused for a second release with the same first proxy in a namespace", func() {
		Expect(kubernetes.Namespace(limit(), "twice")).To(Succeed())
		_, err := kubernetes.Apply(limit(), `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: gatehouse-status-gatehouse
  namespace: twice
  labels: {app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: first, meta.helm.sh/release-namespace: twice}
`)
		Expect(err).NotTo(HaveOccurred())
		install := func(text string) string {
			out, errOut, _ := helm("install", "second", chart, "--namespace=twice", "--dry-run=server", "--skip-crds", "--kubeconfig="+kubernetes.Kubeconfig, values(text))
			return out + errOut
		}
		Expect(install("")).To(And(ContainSubstring(`Lease "gatehouse-status-gatehouse" in namespace "twice" exists and cannot be imported into the current release`),
			ContainSubstring(`must equal "second": current value is "first"`)))
		Expect(install("proxies: [{name: other}]")).To(ContainSubstring("needs other names of proxies (other here)"))
	})

	It("explains what to do next", func() {
		for text, words := range map[string]string{
			"": "kind: GatewayHost", variants()["mode rest"]: "-d Name=gatehouse http://127.0.0.1:1323/proxy",
		} {
			out, errOut, err := helm("install", "gatehouse", chart, "--namespace=gw", "--dry-run=server", "--skip-crds", "--kubeconfig="+kubernetes.Kubeconfig, values(text))
			Expect(err).NotTo(HaveOccurred(), errOut)
			if text == "" {
				_, example, _ := strings.Cut(out, "kubectl apply -f - <<END\n")
				example, _, _ = strings.Cut(example, "  END\n")
				crds, _, err := helm("show", "crds", chart)
				Expect(err).NotTo(HaveOccurred())
				Expect(kubernetes.Apply(limit(), crds, "--server-side")).NotTo(BeEmpty())
				Eventually(func() (string, error) {
					return kubernetes.Apply(limit(), strings.ReplaceAll(example, "YOUR-SERVICE", "hello"), "--dry-run=server", "--validate=strict")
				}).WithTimeout(30 * time.Second).Should(ContainSubstring("gatewayhost.gateway.gatehouse.dev/hello"))
			}
			Expect(out).To(And(ContainSubstring("rollout status deployment/gatehouse-control-plane"), ContainSubstring("helm test gatehouse -n gw"), ContainSubstring(words),
				ContainSubstring("Service gatehouse-envoy-gatehouse waits for the address of a load balancer. Where the cluster gives none, helm install --wait does not return")))
		}
	})
})
