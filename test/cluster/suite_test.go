//go:build cluster

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The images, as hack/cluster-image.sh names them. Each of the first two has a second tag, next, for
// upgrades.
const (
	standaloneImage   = "gatehouse:local"
	controlPlaneImage = "gatehouse-control-plane:local"
	ratelimitImage    = "gatehouse-ratelimit:local"
	redisImage        = "localhost/redis:local"
	postgresImage     = "localhost/postgres:local"
	echoImage         = "localhost/echo:local"
)

// nodeAddress is the address of NodePorts and host ports.
const nodeAddress = "10.99.0.2"

// root is the top of the checkout; the specs run in test/cluster.
const root = "../.."

func TestCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with other tests.
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Cluster")
}

var _ = BeforeSuite(func() {
	dir := os.Getenv("GATEHOUSE_TEST_CLUSTER")
	Expect(dir).NotTo(BeEmpty(), "there is no node: run make test-cluster, or hack/cluster.sh run and then these specs")
	images, err := filepath.Glob(root + "/bin/cluster/*.tar")
	Expect(err).NotTo(HaveOccurred())
	Expect(images).To(HaveLen(6), "the images are not in bin/cluster: run make test-cluster")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_, err = command(ctx, "", root+"/hack/cluster.sh", append([]string{"load", dir}, images...)...)
	Expect(err).NotTo(HaveOccurred())
})

// command runs a program with this standard input and returns its output. An error contains the error
// output.
func command(ctx context.Context, stdin, program string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// run is command with a limit of 5 minutes, and without spaces around the output. Cleanups may call it.
func run(stdin, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := command(ctx, stdin, program, args...)
	return strings.TrimSpace(out), err
}

// tryKubectl runs kubectl as the cluster's administrator.
func tryKubectl(args ...string) (string, error) { return run("", "kubectl", args...) }

func kubectl(args ...string) string {
	GinkgoHelper()
	out, err := tryKubectl(args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// apply passes YAML documents to kubectl apply.
func apply(namespace, yaml string) {
	GinkgoHelper()
	_, err := run(yaml, "kubectl", "apply", "--namespace", namespace, "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// object reads an object, such as "deployment/echo".
func object(namespace, name string, into any) error {
	out, err := tryKubectl("get", name, "--namespace", namespace, "--output", "json")
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// rolledOut waits until a Deployment, DaemonSet or StatefulSet is rolled out.
func rolledOut(namespace, name string) {
	GinkgoHelper()
	kubectl("rollout", "status", name, "--namespace", namespace, "--timeout", "3m")
}

// namespace creates a namespace, whose Pods must conform to a level of Pod Security. It is deleted at
// the end of the spec; a failed spec shows its contents.
func namespace(level string) string {
	GinkgoHelper()
	name := fmt.Sprintf("spec-%08x", rand.Uint32()) //nolint:gosec // no secret
	kubectl("create", "namespace", name)
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			show(name)
		}
		kubectl("delete", "namespace", name, "--timeout", "3m")
	})
	kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce="+level)
	return name
}

// show adds the contents of a namespace to the report.
func show(namespace string) {
	for _, args := range [][]string{
		{"get", "all,endpointslices,gatewayhosts,routefilters,globalconfigs", "--output", "wide"},
		{"get", "events", "--sort-by", ".lastTimestamp"},
		{"get", "gatewayhosts", "--output", "yaml"},
	} {
		out, err := tryKubectl(append(args, "--namespace", namespace)...)
		AddReportEntry("kubectl "+strings.Join(args, " "), fmt.Sprint(out, "\n", err))
	}
	pods, _ := tryKubectl("get", "pods", "--namespace", namespace, "--output", "name")
	for pod := range strings.FieldsSeq(pods) {
		for _, previous := range []string{"", "--previous"} {
			log, err := tryKubectl("logs", pod, "--namespace", namespace, "--all-containers", "--tail", "40", "--previous="+fmt.Sprint(previous != ""))
			if err == nil {
				AddReportEntry("log of "+pod+" "+previous, log)
			}
		}
	}
}

// echo runs the backend as a Deployment and a Service named echo, on port 80, in a namespace. A Pod of
// it continues for 10 s after it was told to stop.
func echo(namespace string, replicas int) {
	GinkgoHelper()
	apply(namespace, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  replicas: %d
  selector: {matchLabels: {app: echo}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: echo
        image: %s
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        ports: [{name: http, containerPort: 8000}]
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports: [{name: http, port: 80, targetPort: http}]
`, replicas, echoImage))
	rolledOut(namespace, "deployment/echo")
}

// nodePort returns the port of the node that leads to a port of a Service.
func nodePort(namespace, service, port string) string {
	GinkgoHelper()
	return kubectl("get", "service", service, "--namespace", namespace, "--output", fmt.Sprintf(`jsonpath={.spec.ports[?(@.name==%q)].nodePort}`, port))
}
