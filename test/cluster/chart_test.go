//go:build cluster

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// chartPath is the chart, from test/cluster.
const chartPath = root + "/charts/gatehouse"

// hostPort is the node's port of the Envoys of the proxy edge.
const hostPort = "18080"

// ours has the images of these specs, and two proxies: gatehouse at a NodePort, edge at a port of
// the node.
const ours = `
images:
  controlPlane: {tag: local}
  envoy: {tag: local}
  ratelimit: {tag: local}
  redis: {repository: localhost/redis, tag: local}
redis: {runAsUser: 10003}
envoy: {service: {type: NodePort}, drain: {timeSeconds: 15}}
proxies:
- name: gatehouse
- name: edge
  kind: DaemonSet
  hostPorts: {http: ` + hostPort + `}
  service: {enabled: false}
`

// release is an installation of the chart with the name gatehouse.
type release struct{ namespace, values string }

func (r release) helm(command string, args ...string) string {
	GinkgoHelper()
	out, err := run("", "helm", append([]string{command, "gatehouse", "--namespace", r.namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// upgrade installs or upgrades the chart, and waits until everything is ready.
func (r release) upgrade(more ...string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(file, []byte(r.values), 0o600)).To(Succeed())
	r.helm("upgrade", append([]string{chartPath, "--install", "--wait", "--timeout", "4m", "--values", file}, more...)...)
}

// parts returns the Deployments and other workloads of the chart.
func (r release) parts() []string {
	return []string{
		"deployment/gatehouse-control-plane", "deployment/gatehouse-envoy-gatehouse", "daemonset/gatehouse-envoy-edge",
		"deployment/gatehouse-ratelimit", "statefulset/gatehouse-redis",
	}
}

func (r release) ready() {
	GinkgoHelper()
	for _, part := range r.parts() {
		rolledOut(r.namespace, part)
	}
}

// nodeAddr returns HOST:PORT of the proxy gatehouse, at the node.
func (r release) nodeAddr() string {
	GinkgoHelper()
	return net.JoinHostPort(nodeAddress, nodePort(r.namespace, "gatehouse-envoy-gatehouse", "http"))
}

// answers waits until an Envoy at an address of the node sends requests for a host to
// the backend.
func answers(ctx SpecContext, addr, host string) {
	GinkgoHelper()
	Eventually(func() error { return get200(ctx, addr, host) }).Should(Succeed(), "%s at %s", host, addr)
}

// underTraffic sends 500 requests a second for a host while change runs. Each must be answered.
func (r release) underTraffic(host string, change func()) {
	GinkgoHelper()
	traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: r.nodeAddr(), Host: host, Rate: 500, Connections: 100})
	DeferCleanup(traffic.Stop)
	change()
	Eventually(traffic.Report).Should(HaveField("Requests", BeNumerically(">", 1000)))
	noneFailed(traffic.Stop())
}

// kill ends a pod of a part at once, and waits until another one has replaced it and everything is ready. A pod of a
// StatefulSet keeps its name, so that pods are told apart by their UIDs.
func (r release) kill(component string, more ...string) {
	GinkgoHelper()
	before := r.pods(component, more...)
	Expect(before).NotTo(BeEmpty())
	victim := before[0]
	kubectl("delete", "pod", victim.Name, "--namespace", r.namespace, "--grace-period=0", "--force")
	Eventually(func() []livePod { return r.pods(component, more...) }).Should(And(HaveLen(len(before)), Not(ContainElement(HaveField("UID", victim.UID)))))
	r.ready()
}

// livePod is the metadata of a pod.
type livePod struct{ Name, UID, DeletionTimestamp string }

// pods returns the pods of a part that are not terminating.
func (r release) pods(component string, more ...string) []livePod {
	GinkgoHelper()
	selector := strings.Join(append([]string{"app.kubernetes.io/instance=gatehouse", "app.kubernetes.io/component=" + component}, more...), ",")
	var list struct{ Items []struct{ Metadata livePod } }
	Expect(json.Unmarshal([]byte(kubectl("get", "pods", "--namespace", r.namespace, "--selector", selector, "--output", "json")), &list)).To(Succeed())
	var live []livePod
	for _, item := range list.Items {
		if item.Metadata.DeletionTimestamp == "" {
			live = append(live, item.Metadata)
		}
	}
	return live
}

// image returns the image of a part.
func (r release) image(part string) string {
	GinkgoHelper()
	return kubectl("get", part, "--namespace", r.namespace, "--output", "jsonpath={.spec.template.spec.containers[0].image}")
}

// everything lists what an installation may have left, except its Secrets.
func (r release) everything() string {
	GinkgoHelper()
	kinds := "all,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,horizontalpodautoscalers,persistentvolumeclaims,endpointslices,leases"
	left := kubectl("get", kinds, "--namespace", r.namespace, "--output", "name")
	left += "\n" + kubectl("get", "clusterroles,clusterrolebindings", "--selector", "app.kubernetes.io/instance=gatehouse", "--output", "name")
	return strings.TrimSpace(left)
}

// addPostgres runs a PostgreSQL and creates the Secret that the chart needs in mode rest.
func addPostgres(namespace string) {
	GinkgoHelper()
	apply(namespace, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: postgres}
spec:
  selector: {matchLabels: {app: postgres}}
  template:
    metadata: {labels: {app: postgres}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, fsGroup: 10004, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: postgres
        image: %s
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        ports: [{name: postgres, containerPort: 5432}]
        readinessProbe: {tcpSocket: {port: postgres}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
      volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: postgres}
spec:
  selector: {app: postgres}
  ports: [{name: postgres, port: 5432}]
---
apiVersion: v1
kind: Secret
metadata: {name: postgres}
stringData: {url: "postgres://gatehouse@postgres/postgres?sslmode=disable"}
`, postgresImage))
	rolledOut(namespace, "deployment/postgres")
}

// renewed waits until the xDS port of every control plane has a certificate of this
// authority.
func (r release) renewed(authority *x509.Certificate) {
	GinkgoHelper()
	pods := kubectl("get", "pods", "--namespace", r.namespace, "--selector", "app.kubernetes.io/component=control-plane", "--output", "jsonpath={.items[*].status.podIP}")
	for ip := range strings.FieldsSeq(pods) {
		Eventually(func() (err error) {
			config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error { //nolint:gosec // a look at it
				cert, parseErr := x509.ParseCertificate(raw[0])
				if err = parseErr; err == nil {
					err = cert.CheckSignatureFrom(authority)
				}
				return err
			}}
			conn, dialErr := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", net.JoinHostPort(ip, "18000"), config))
			if dialErr != nil {
				return dialErr
			}
			return conn.Close()
		}).Should(Succeed())
	}
}

func get200(ctx SpecContext, addr, host string) error {
	answer, err := getFrom(ctx, addr, host)
	if err != nil {
		return err
	}
	if answer.Status != 200 {
		return fmt.Errorf("%s at %s answers %d: %s", host, addr, answer.Status, answer.Body)
	}
	return nil
}
