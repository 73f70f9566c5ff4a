package envoy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
		Entry("an admin name", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminAddr: "localhost:9001"}, `admin address "localhost:9001" is not IP:PORT such as 127.0.0.1:9001`),
	)

	It("is made for the Envoy that make envoy fetches", func() {
		out, err := exec.Command(program, "--version").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("/" + envoy.Version + "/"))
	})
})
