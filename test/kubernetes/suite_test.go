package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestKubernetes(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with the tests of other packages.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Kubernetes mode")
}

// cluster is the API that the specs share. Each uses its own namespaces.
var cluster *testkit.Kubernetes

var _ = BeforeSuite(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() {
		Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	cluster = startCluster(testkit.KubernetesOptions{})
	applyCRDs(cluster)
	applyGatewayAPI(cluster)
})

// startCluster runs a kube-apiserver until the end of the spec or suite.
func startCluster(o testkit.KubernetesOptions) *testkit.Kubernetes {
	GinkgoHelper()
	k, err := testkit.StartKubernetes(limit(), GinkgoT().TempDir(), o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return k.End() })
	return k
}

func applyCRDs(k *testkit.Kubernetes) {
	GinkgoHelper()
	dir, err := filepath.Abs("../../charts/gatehouse/crds")
	Expect(err).NotTo(HaveOccurred())
	_, err = k.Kubectl(limit(), "apply", "--server-side", "-f", dir)
	Expect(err).NotTo(HaveOccurred())
	_, err = k.Kubectl(limit(), "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
	Expect(err).NotTo(HaveOccurred())
}

// limit bounds the start and the end of a process. A thousand objects take a busy machine more than a minute.
func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// place is a namespace of a cluster.
type place struct {
	*testkit.Kubernetes
	namespace string
}

// newPlace creates a namespace.
func newPlace(k *testkit.Kubernetes) place {
	GinkgoHelper()
	p := place{k, fmt.Sprintf("spec-%d", freePort())}
	Expect(k.Namespace(limit(), p.namespace)).To(Succeed())
	return p
}

// apply applies YAML documents in the namespace.
func (p place) apply(format string, args ...any) {
	GinkgoHelper()
	_, err := p.Apply(limit(), fmt.Sprintf(format, args...), "-n", p.namespace)
	Expect(err).NotTo(HaveOccurred())
}

// kubectl runs kubectl in the namespace.
func (p place) kubectl(args ...string) string {
	GinkgoHelper()
	out, err := p.Kubectl(limit(), append([]string{"-n", p.namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// service creates a Service with an EndpointSlice of these backends.
func (p place) service(name string, backends ...*testkit.Backend) {
	GinkgoHelper()
	p.apply("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{name: http, port: 80}]}\n", name)
	p.endpoints(name, backends...)
}

// endpoints sets the EndpointSlice of a Service to these backends.
func (p place) endpoints(service string, backends ...*testkit.Backend) {
	GinkgoHelper()
	var list []string
	port := 1
	for _, b := range backends {
		list = append(list, fmt.Sprintf("{addresses: [%q], conditions: {ready: true}}", b.IP))
		port = b.Port
	}
	p.apply(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-1, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [%s]
`, service, service, port, strings.Join(list, ", "))
}

// host creates a GatewayHost whose only route leads to a Service.
func (p place) host(name, fqdn, service string) {
	GinkgoHelper()
	p.apply("%s", hostYAML(name, fqdn, service))
}

func hostYAML(name, fqdn, service string) string {
	return fmt.Sprintf(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: %s}
spec:
  virtualhost: {fqdn: %s}
  routes: [{conditions: [{prefix: /}], services: [{name: %s, port: 80}]}]
`, name, fqdn, service)
}

// gateway is a control plane, with the port of its Envoys.
type gateway struct {
	*testkit.Gatehouse
	port int
	// env and args are those that it was started with.
	env, args []string
}

// serveArgs returns the arguments of a control plane that reads the namespace, for a proxy that listens on a port.
func (p place) serveArgs(port int, more ...string) []string {
	GinkgoHelper()
	return append([]string{
		"serve", "--mode", "kubernetes", "--kubeconfig", p.Kubeconfig, "--kubernetes-namespaces", p.namespace,
		"--kubernetes-proxy-settings", proxySettings(port, freePort()),
		"--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
	}, more...)
}

// proxySettings returns the file of a proxy that listens on these ports.
func proxySettings(port, securePort int) string {
	GinkgoHelper()
	return file("proxies.yaml", fmt.Sprintf(
		"version: 1\nproxies:\n- name: gatehouse\n  http_port: %d\n  https_port: %d\n  listen_ip: 127.0.0.1\n", port, securePort))
}

// serve runs a control plane that reads the namespace until it is ready.
func (p place) serve(more ...string) gateway {
	GinkgoHelper()
	return p.serveIn("", more...)
}

// serveIn does the same in a Pod with that name; in none if it is empty.
func (p place) serveIn(pod string, more ...string) gateway {
	GinkgoHelper()
	g := p.spawn(pod, more...)
	Expect(g.WaitReady(limit())).To(Succeed(), g.Stderr.String)
	return g
}

// spawn runs a control plane that reads the namespace, in a Pod unless its name is empty. At the end of the spec it must
// obey SIGTERM, unless it has ended before.
func (p place) spawn(pod string, more ...string) gateway {
	GinkgoHelper()
	port := freePort()
	env, args := []string{"POD_NAMESPACE=" + p.namespace, "POD_NAME=" + pod}, p.serveArgs(port, more...)
	g, err := testkit.StartGatehouse(limit(), env, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		select {
		case <-g.Exited():
		default:
			Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String())
		}
		Expect(g.Stderr.String()).NotTo(Or(ContainSubstring("goroutine "), ContainSubstring("panic"), ContainSubstring("DATA RACE")))
	}, NodeTimeout(time.Minute))
	return gateway{g, port, env, args}
}

// envoy runs an Envoy of the proxy until the end of the spec.
func (g gateway) envoy() *testkit.Envoy {
	GinkgoHelper()
	return envoyOf("gatehouse", g.XDSAddr)
}

// envoyOf runs an Envoy of a proxy, whose control plane has the address.
func envoyOf(proxy, xdsAddr string) *testkit.Envoy {
	GinkgoHelper()
	e, err := testkit.StartEnvoy(limit(), GinkgoT().TempDir(), proxy, xdsAddr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return e
}

// again restarts the control plane, at the same address, and returns when it is ready.
func (g gateway) again() gateway {
	GinkgoHelper()
	started, err := testkit.StartGatehouse(limit(), g.env, append(slices.Clone(g.args), "--xds-addr", g.XDSAddr)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Kill)
	Expect(started.WaitReady(limit())).To(Succeed(), started.Stderr.String)
	return gateway{started, g.port, g.env, g.args}
}

// request sends a request for a path of a host, and returns the status and the backend that answered.
func (g gateway) request(host, path string) string {
	req, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(g.port)+path, http.NoBody)
	if err != nil {
		return err.Error()
	}
	req.Host = host
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	return strings.TrimSpace(strconv.Itoa(res.StatusCode) + " " + res.Header.Get(testkit.BackendHeader))
}

// expect waits until a host answers like this: "200 blue", "503".
func (g gateway) expect(host, answer string) {
	GinkgoHelper()
	Eventually(func() string { return g.request(host, "/") }).Should(Equal(answer), g.Stderr.String)
}

// backend runs a backend at an address that an EndpointSlice may have, which is not a loopback address.
func backend(name string) *testkit.Backend {
	GinkgoHelper()
	b, err := testkit.StartBackend(name, testkit.BackendOptions{IP: ownAddress()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	return b
}

func ownAddress() string {
	GinkgoHelper()
	ip, err := testkit.OwnAddress()
	Expect(err).NotTo(HaveOccurred())
	return ip
}

func freePort() int {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}
