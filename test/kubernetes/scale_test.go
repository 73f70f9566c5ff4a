package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// usage returns the CPU time of a process so far, and its peak memory, in MiB.
func usage(p *testkit.Process) (cpu time.Duration, peak int) {
	GinkgoHelper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	Expect(err).NotTo(HaveOccurred())
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	for _, f := range fields[11:13] { // in hundredths of a second
		n, err := strconv.Atoi(f)
		Expect(err).NotTo(HaveOccurred())
		cpu += time.Duration(n) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.SplitSeq(string(status), "\n") {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(text)[0])
			Expect(err).NotTo(HaveOccurred())
			peak = kib / 1024
		}
	}
	return cpu, peak
}

// median returns the median of the times of a call.
func median(times int, call func(i int) time.Duration) time.Duration {
	var list []time.Duration
	for i := range times {
		list = append(list, call(i))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// This is a measurement, and takes minutes: it runs if GATEHOUSE_TEST_SCALE has the number of GatewayHosts.
var _ = Describe("serve --mode kubernetes, at scale", func() {
	hosts, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_SCALE"))
	if err != nil {
		return
	}
	It("is measured with many GatewayHosts and five EndpointSlices for each", func() {
		p := newPlace(cluster)
		blue := backend("blue")
		const slicesEach = 5
		types := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{gatewayv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme} {
			Expect(add(types)).To(Succeed())
		}
		config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		config.QPS = -1
		api, err := client.New(config, client.Options{Scheme: types})
		Expect(err).NotTo(HaveOccurred())
		create := func(text string, obj client.Object) error {
			if err := yaml.Unmarshal([]byte(text), obj); err != nil {
				return err
			}
			obj.SetNamespace(p.namespace)
			return api.Create(context.Background(), obj)
		}
		var group errgroup.Group
		group.SetLimit(16)
		for i := range hosts {
			group.Go(func() error {
				service := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: s%d}\nspec: {clusterIP: None, ports: [{name: http, port: 80}]}\n", i)
				if err := create(service, &corev1.Service{}); err != nil {
					return err
				}
				for n := range slicesEach {
					slice := fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s%d-%d, labels: {kubernetes.io/service-name: s%d}}\n"+
						"addressType: IPv4\nports: [{name: http, port: %d}]\nendpoints: [{addresses: [%q], conditions: {ready: true}}]\n", i, n, i, blue.Port, blue.IP)
					if err := create(slice, &discoveryv1.EndpointSlice{}); err != nil {
						return err
					}
				}
				return create(hostYAML(fmt.Sprintf("h%d", i), fmt.Sprintf("h%d.example", i), fmt.Sprintf("s%d", i)), &gatewayv1.GatewayHost{})
			})
		}
		Expect(group.Wait()).To(Succeed())
		began := time.Now()
		g := p.serve()
		ready := time.Since(began)
		cpuStart, _ := usage(g.Process)
		g.envoy()
		g.expect(fmt.Sprintf("h%d.example", hosts-1), "200 blue")
		first := time.Since(began)

		p.service("new", blue)
		kube := median(30, func(i int) time.Duration {
			name := fmt.Sprintf("new%d", i)
			began := time.Now()
			Expect(create(hostYAML(name, name+".example", "new"), &gatewayv1.GatewayHost{})).To(Succeed())
			return g.until(name+".example", began)
		})
		cpu, peak := usage(g.Process)
		AddReportEntry("at the start", fmt.Sprintf("hosts %d: CPU %s until ready, first 200 after %s", hosts, cpuStart, first.Round(time.Millisecond)))
		rest := inREST(hosts, slicesEach, blue)
		AddReportEntry("the table of docs/kubernetes.md", tableOf(measured{kube, cpu, peak}, rest, ready))
	})
})

// measured are the costs of one mode: the time until a new host answers, CPU time, and memory in MiB.
type measured struct {
	create, cpu time.Duration
	peak        int
}

// tableOf returns the costs of both modes, as the table of docs/kubernetes.md.
func tableOf(kube, rest measured, ready time.Duration) string {
	row := func(what, unit string, kube, rest float64) string {
		return fmt.Sprintf("| %s | %.4g %s | %.4g %s | %.2f |\n", what, kube, unit, rest, unit, kube/rest)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return "\n| | Kubernetes | REST | ratio |\n|---|---:|---:|---:|\n" +
		row("from the create (the last call) to the first 200 through Envoy", "ms", ms(kube.create), ms(rest.create)) +
		row("CPU time of the control plane, from its start to the end of the run", "s", kube.cpu.Seconds(), rest.cpu.Seconds()) +
		row("most memory that the control plane had", "MiB", float64(kube.peak), float64(rest.peak)) +
		fmt.Sprintf("| from the start of a control plane to ready | %.4g s | | |\n", ready.Seconds())
}

// until returns the time from a moment to the first 200 of a host.
func (g gateway) until(host string, began time.Time) time.Duration {
	GinkgoHelper()
	Eventually(func() string { return g.request(host, "/") }).WithPolling(2 * time.Millisecond).Should(Equal("200 blue"))
	return time.Since(began)
}

// inREST measures the same with the REST API.
func inREST(hosts, each int, blue *testkit.Backend) measured {
	GinkgoHelper()
	var doc strings.Builder
	port := freePort()
	fmt.Fprintf(&doc, "version: 1\nproxies:\n- {name: gatehouse, http_port: %d, listen_ip: 127.0.0.1}\nupstreams:\n", port)
	for i := range hosts * each {
		fmt.Fprintf(&doc, "- {upstream_name: u%d, upstream_ip: %s, upstream_port: %d}\n", i, blue.IP, blue.Port)
	}
	doc.WriteString("services:\n")
	for i := range hosts {
		var of []string
		for n := range each {
			of = append(of, fmt.Sprintf("u%d", i*each+n))
		}
		fmt.Fprintf(&doc, "- {service_name: h%d, fqdn: h%d.example, proxies: [gatehouse], routes: [{route_name: root, route_prefix: /, upstreams: [%s]}]}\n", i, i, strings.Join(of, ", "))
	}
	r, err := testkit.StartGatehouse(limit(), nil, "serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.Kill)
	Expect(r.WaitReady(limit())).To(Succeed())
	a, err := r.API.Do(limit(), "PUT", "/config", "application/yaml", doc.String())
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(200), a.Body)
	g := gateway{Gatehouse: r, port: port}
	g.envoy()
	g.expect(fmt.Sprintf("h%d.example", hosts-1), "200 blue")
	rest := median(30, func(i int) time.Duration {
		name := fmt.Sprintf("new%d", i)
		for _, call := range [][]string{
			{"/service", "Service_Name=" + name, "fqdn=" + name + ".example"}, {"/service/" + name + "/route", "Route_Name=root", "Route_prefix=/"},
			{"/service/" + name + "/route/root/upstream/u0"},
		} {
			a, err := r.API.Post(limit(), call[0], call[1:]...)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(201), a.Body)
		}
		began := time.Now()
		a, err := r.API.Post(limit(), "/proxy/gatehouse/service/"+name)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(201), a.Body)
		return g.until(name+".example", began)
	})
	cpu, peak := usage(r.Process)
	return measured{rest, cpu, peak}
}
