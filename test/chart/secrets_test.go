package chart_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The probe of the rate-limit engine", func() {
	It("fails after the certificate is replaced, because process 1 has the old one", func() {
		path, err := testkit.Binary("ratelimit-health")
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), "tls.crt")
		probe := func() (string, error) {
			cmd := exec.CommandContext(limit(), path, "--same-certificate")
			cmd.Env = []string{"CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + file}
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		Expect(os.WriteFile(file, []byte("a certificate"), 0o600)).To(Succeed())
		// Process 1 of this machine, which started long ago.
		out, err := probe()
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("after the engine began"))
		Expect(os.Chtimes(file, time.Time{}, time.Unix(0, 0))).To(Succeed())
		Expect(probe()).To(BeEmpty())
	})
})

var _ = Describe("The init container of the rate-limit engine", func() {
	It("waits until Redis accepts connections, and says for what", func() {
		Expect(render("kubernetes: {allNamespaces: true}").get("Deployment/gatehouse-ratelimit").at("spec.template.spec.initContainers.0")).To(And(
			HaveKeyWithValue("command", []any{"/usr/local/bin/ratelimit-health", "--wait-for-redis"}),
			HaveKeyWithValue("env", []any{map[string]any{"name": "REDIS_URL", "value": "gatehouse-redis.gw.svc:6379"}}),
			HaveKeyWithValue("securityContext", HaveKeyWithValue("readOnlyRootFilesystem", true)),
		))
		port, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		address := fmt.Sprintf("127.0.0.1:%d", port)
		path, err := testkit.Binary("ratelimit-health")
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.CommandContext(limit(), path, "--wait-for-redis")
		cmd.Env = []string{"REDIS_URL=" + address}
		stderr, err := cmd.StderrPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Start()).To(Succeed())
		Expect(bufio.NewReader(stderr).ReadString('\n')).To(HavePrefix("ratelimit-health: waiting for Redis: dial tcp " + address + ": "))
		listener, err := (&net.ListenConfig{}).Listen(limit(), "tcp", address)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		Expect(cmd.Wait()).To(Succeed())
	})
})

// The Job of the chart, run here with its arguments and the permissions of its Role.
var _ = Describe("The Job that fills the Secrets", Ordered, func() {
	var kubernetes *testkit.Kubernetes
	var kubeconfig string
	var list objects

	BeforeAll(func() {
		ctx := limit()
		var err error
		kubernetes, err = testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(kubernetes.End()).To(Succeed()) })
		Expect(kubernetes.Namespace(ctx, "gw")).To(Succeed())
		list = render(variants()["mode rest"])
		_, err = kubernetes.Apply(ctx, list.yaml())
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err = kubernetes.ServiceAccount(ctx, "gw", "gatehouse-secrets")
		Expect(err).NotTo(HaveOccurred())
	})

	job := func() string {
		GinkgoHelper()
		path, err := testkit.Binary("gatehouse")
		Expect(err).NotTo(HaveOccurred())
		args := []string{"--kubeconfig=" + kubeconfig}
		for _, a := range list.get("Job/gatehouse-secrets-1").at("spec.template.spec.containers.0.args").([]any) {
			args = append(args, a.(string))
		}
		out, err := exec.CommandContext(limit(), path, append(args[1:], args[0])...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}
	data := func(secret string) (d map[string]string) {
		GinkgoHelper()
		out, err := kubernetes.Kubectl(limit(), "get", "secret", secret, "--namespace=gw", "--output=json")
		Expect(err).NotTo(HaveOccurred())
		var s struct{ Data map[string]string }
		Expect(json.Unmarshal([]byte(out), &s)).To(Succeed())
		return s.Data
	}
	all := func() map[string]map[string]string {
		GinkgoHelper()
		m := map[string]map[string]string{}
		for _, o := range list {
			if o.kind() == "Secret" {
				m[o.name()] = data(o.name())
			}
		}
		return m
	}

	It("creates what each component needs, with only the permissions of its Role", func() {
		Expect(job()).To(And(ContainSubstring("Secret gw/gatehouse-ca: written: ca.crt, ca.key\n"), ContainSubstring("Secret gw/gatehouse-secret-key: written: secret.key\n")))
		for _, name := range []string{"gatehouse-control-plane-tls", "gatehouse-envoy-gatehouse-tls", "gatehouse-ratelimit-tls"} {
			Expect(data(name)).To(And(HaveLen(3), HaveKeyWithValue("ca.crt", data("gatehouse-ca")["ca.crt"]), HaveKey("tls.crt"), HaveKey("tls.key")))
		}
		Expect(data("gatehouse-api-token")["token"]).To(HaveLen(88), "64 hexadecimal digits in base64")
		Expect(data("gatehouse-redis")["password"]).NotTo(Equal(data("gatehouse-api-token")["token"]))
	})

	It("changes nothing the next time, nor after an update of the chart", func() {
		before := all()
		Expect(job()).NotTo(ContainSubstring("written"))
		_, err := kubernetes.Apply(limit(), list.yaml())
		Expect(err).NotTo(HaveOccurred())
		Expect(all()).To(Equal(before))
	})

	It("recreates what is missing", func() {
		before := all()
		_, err := kubernetes.Kubectl(limit(), "patch", "secret", "gatehouse-envoy-gatehouse-tls", "--namespace=gw", "--patch", `{"data": null}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(job()).To(ContainSubstring("Secret gw/gatehouse-envoy-gatehouse-tls: written"))
		after := all()
		Expect(after["gatehouse-envoy-gatehouse-tls"]).To(HaveLen(3))
		delete(before, "gatehouse-envoy-gatehouse-tls")
		delete(after, "gatehouse-envoy-gatehouse-tls")
		Expect(after).To(Equal(before))
	})

	It("cannot read any other Secret", func() {
		_, err := kubernetes.Apply(limit(), "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: gw}")
		Expect(err).NotTo(HaveOccurred())
		path, err := testkit.Binary("gatehouse")
		Expect(err).NotTo(HaveOccurred())
		out, err := exec.CommandContext(limit(), path, "pki", "secrets", "--namespace=gw", "--kubeconfig="+kubeconfig, "--random=other/key").CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring(`reading Secret gw/other: secrets "other" is forbidden`), fmt.Sprint(err))
	})
})
