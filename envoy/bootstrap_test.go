package envoy_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/envoy"
)

func TestEnvoy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "envoy")
}

const program = "../bin/envoy"

// validate has a real Envoy check a bootstrap.
func validate(bootstrap []byte) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "envoy.yaml")
	Expect(os.WriteFile(file, bootstrap, 0o600)).To(Succeed())
	out, err := exec.Command(program, "--mode", "validate", "-l", "warning", "-c", file).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s (bin/envoy comes from `make envoy`)", out)
}

// tree is a bootstrap as YAML sees it.
func tree(bootstrap []byte) map[string]any {
	GinkgoHelper()
	m := map[string]any{}
	Expect(yaml.Unmarshal(bootstrap, &m)).To(Succeed())
	return m
}

var _ = Describe("Bootstrap", func() {
	DescribeTable("is the written one and pleases Envoy",
		func(p envoy.Params, golden string) {
			out, err := envoy.Bootstrap(p)
			Expect(err).NotTo(HaveOccurred())
			want, err := os.ReadFile(golden)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(out)).To(MatchYAML(want))
			validate(out)
		},
		Entry("an address", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:18000", AdminAddr: "127.0.0.1:9001"}, "testdata/address.yaml"),
		Entry("a name, no admin endpoint, another limit",
			envoy.Params{Node: "edge-1", XDSAddr: "gatehouse.example:18001", MaxConnections: 7, Parent: "7f"}, "testdata/name.yaml"),
	)

	It("takes IPv6 addresses", func() {
		out, err := envoy.Bootstrap(envoy.Params{Node: "gw", XDSAddr: "[::1]:18000", AdminAddr: "[::1]:0"})
		Expect(err).NotTo(HaveOccurred())
		validate(out)
	})

	DescribeTable("keeps any node id in its place",
		func(node string) {
			out, err := envoy.Bootstrap(envoy.Params{Node: node, XDSAddr: "127.0.0.1:18000"})
			Expect(err).NotTo(HaveOccurred())
			Expect(tree(out)["node"]).To(Equal(map[string]any{"id": node, "cluster": node}))
			validate(out)
		},
		Entry(nil, `gw", cluster: "x`),
		Entry(nil, `a: b # c`),
		Entry(nil, `{{ .XDSAddr }} <&> \n %s`),
		Entry(nil, "null"),
		Entry(nil, "grüße"),
	)

	DescribeTable("refuses",
		func(p envoy.Params, want string) {
			_, err := envoy.Bootstrap(p)
			Expect(err).To(MatchError(want))
		},
		Entry("no node", envoy.Params{XDSAddr: "127.0.0.1:1"}, `node id "" must be text without control characters`),
		Entry("a line break", envoy.Params{Node: "a\nadmin: x", XDSAddr: "127.0.0.1:1"}, `node id "a\nadmin: x" must be text without control characters`),
		Entry("bytes", envoy.Params{Node: "\xff", XDSAddr: "127.0.0.1:1"}, `node id "\xff" must be text without control characters`),
		Entry("no port", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1"}, `xDS address "127.0.0.1" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("any port", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:0"}, `xDS address "127.0.0.1:0" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("no host", envoy.Params{Node: "gw", XDSAddr: ":18000"}, `xDS address ":18000" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("a line break in the host", envoy.Params{Node: "gw", XDSAddr: "a\nb:18000"}, `xDS address "a\nb:18000" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("a relative socket", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminSocket: "admin.sock"}, `admin socket "admin.sock" is not an absolute path of at most 107 bytes such as /run/envoy/admin.sock`),
		Entry("a long socket", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminSocket: "/" + strings.Repeat("a", 107)}, `admin socket "/`+strings.Repeat("a", 107)+`" is not an absolute path of at most 107 bytes such as /run/envoy/admin.sock`),
		Entry("a line break in the socket", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminSocket: "/a\nb"}, `admin socket "/a\nb" is not an absolute path of at most 107 bytes such as /run/envoy/admin.sock`),
		Entry("an admin name", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminAddr: "localhost:9001"}, `admin address "localhost:9001" is not IP:PORT such as 127.0.0.1:9001`),
	)

	It("takes a Unix socket for the admin endpoint", func() {
		socket := filepath.Join(GinkgoT().TempDir(), "ad min's.sock")
		out, err := envoy.Bootstrap(envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:18000", AdminSocket: socket, AdminAddr: "127.0.0.1:9001"})
		Expect(err).NotTo(HaveOccurred())
		Expect(tree(out)["admin"]).To(Equal(map[string]any{
			"address": map[string]any{"pipe": map[string]any{"path": socket, "mode": 0o600}}, "ignore_global_conn_limit": true,
		}))
		validate(out)
	})

	It("says how to start an Envoy, and one more on the same host", func() {
		for _, name := range []string{"first", "second"} {
			dir := GinkgoT().TempDir()
			socket := filepath.Join(dir, "admin.sock")
			out, err := envoy.Bootstrap(envoy.Params{Node: name, XDSAddr: "127.0.0.1:1", AdminSocket: socket})
			Expect(err).NotTo(HaveOccurred())
			said := regexp.MustCompile(`(?m)^#   envoy (.*)$`).FindSubmatch(out)
			Expect(said).To(HaveLen(2))
			Expect(os.WriteFile(filepath.Join(dir, "envoy.yaml"), out, 0o600)).To(Succeed())
			path, err := filepath.Abs(program)
			Expect(err).NotTo(HaveOccurred())
			log := gbytes.NewBuffer()
			cmd := exec.Command(path, strings.Fields(string(said[1]))...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
			Expect(cmd.Start()).To(Succeed())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			DeferCleanup(func() {
				Expect(ended).NotTo(Receive(), "%s", log.Contents())
				Expect(cmd.Process.Kill()).To(Succeed())
				Expect(<-ended).To(MatchError("signal: killed"))
			})
			Eventually(func() error { _, err := net.Dial("unix", socket); return err }).WithTimeout(time.Minute).Should(Succeed(), "%s: %s", name, log.Contents())
		}
	})

	It("is made for the Envoy that make envoy fetches", func() {
		out, err := exec.Command(program, "--version").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("/" + envoy.Version + "/"))
	})
})
