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
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestEnvoy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "envoy")
}

const program = "../bin/envoy"

// validate makes a real Envoy check a bootstrap.
func validate(bootstrap []byte) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "envoy.yaml")
	Expect(os.WriteFile(file, bootstrap, 0o600)).To(Succeed())
	out, err := exec.Command(program, "--mode", "validate", "-l", "warning", "-c", file).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s (bin/envoy comes from `make envoy`)", out)
}

// certificateDir returns a directory with the authority ca.crt, and gw.crt with gw.key.
func certificateDir() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	ca, err := testkit.NewAuthority("ca")
	Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Issue(testkit.CertificateOptions{Names: []string{"gw"}, Client: true})
	Expect(err).NotTo(HaveOccurred())
	for name, text := range map[string]string{"ca.crt": ca.PEM, "gw.crt": pair.Cert, "gw.key": pair.Key} {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	return dir
}

// tree returns a bootstrap as YAML parses it.
func tree(bootstrap []byte) map[string]any {
	GinkgoHelper()
	m := map[string]any{}
	Expect(yaml.Unmarshal(bootstrap, &m)).To(Succeed())
	return m
}

var _ = Describe("Bootstrap", func() {
	DescribeTable("matches the golden file and is valid for Envoy",
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
			envoy.Params{Node: "edge-1", XDSAddr: "gatehouse.example:18001", MaxConnections: 7, Parent: "7f", Instance: "edge-1.b", Zone: "europe-west1-b", LogDir: "/var/log/edge"}, "testdata/name.yaml"),
	)

	DescribeTable("with TLS, a token and limits matches the golden file and is valid for Envoy",
		func(change func(*envoy.Params, string), golden string) {
			dir := certificateDir()
			p := envoy.Params{Node: "gw", XDSAddr: "gatehouse.example:18000", TLS: &envoy.TLS{CA: dir + "/ca.crt"}}
			change(&p, dir)
			out, err := envoy.Bootstrap(p)
			Expect(err).NotTo(HaveOccurred())
			want, err := os.ReadFile(golden)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(out)).To(MatchYAML(strings.ReplaceAll(string(want), "DIR", dir)))
			validate(out)
		},
		Entry("a certificate", func(p *envoy.Params, dir string) {
			p.TLS.Cert, p.TLS.Key = dir+"/gw.crt", dir+"/gw.key"
		}, "testdata/certificate.yaml"),
		Entry("a certificate that is watched, an address", func(p *envoy.Params, dir string) {
			p.XDSAddr = "[0:0::1]:18000"
			p.TLS.Cert, p.TLS.Key = dir+"/gw.crt", dir+"/gw.key"
			p.TLS.CertFile, p.TLS.CAFile = dir+"/certificate.json", dir+"/ca.json"
			certificate, authorities, err := envoy.Follow(*p.TLS, p.XDSAddr)
			Expect(err).NotTo(HaveOccurred())
			Expect(certificate).To(MatchJSON(`{"resources": [{
				"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "gatehouse_xds_certificate",
				"tls_certificate": {"certificate_chain": {"filename": "` + dir + `/gw.crt"}, "private_key": {"filename": "` + dir + `/gw.key"}}}]}`))
			Expect(authorities).To(MatchJSON(`{"resources": [{
				"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "gatehouse_xds_ca",
				"validation_context": {"trusted_ca": {"filename": "` + dir + `/ca.crt"},
					"match_typed_subject_alt_names": [{"san_type": "IP_ADDRESS", "matcher": {"exact": "::1"}}]}}]}`))
			Expect(os.WriteFile(p.TLS.CertFile, certificate, 0o600)).To(Succeed())
			Expect(os.WriteFile(p.TLS.CAFile, authorities, 0o600)).To(Succeed())
		}, "testdata/followed.yaml"),
		Entry("a token, as a sidecar, with limits and more metadata", func(p *envoy.Params, _ string) {
			p.XDSAddr, p.TLS.ServerName = "10.0.0.1:18000", "control.example"
			p.Token, p.Loopback, p.Parent = "ghx_abc-_.~+/=9", true, "7f"
			p.MaxHeap, p.MaxConnections = 512<<20, 1000
			p.Metadata = map[string]string{"zone": "a: b", `"build"`: "7"}
			p.StatsTags = map[string]string{"zone": "a", "team": "%x"}
		}, "testdata/token.yaml"),
	)

	It("watches only the authorities if the Envoy has no certificate", func() {
		certificate, _, err := envoy.Follow(envoy.TLS{CA: "/ca.crt"}, "127.0.0.1:1")
		Expect(err).NotTo(HaveOccurred())
		Expect(certificate).To(BeNil())
	})

	It("accepts IPv6 addresses", func() {
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
		Entry("control characters", envoy.Params{Node: "\xff", XDSAddr: "127.0.0.1:1"}, `node id "\xff" must be text without control characters`),
		Entry("no port", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1"}, `xDS address "127.0.0.1" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("any port", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:0"}, `xDS address "127.0.0.1:0" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("no host", envoy.Params{Node: "gw", XDSAddr: ":18000"}, `xDS address ":18000" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("a line break in the host", envoy.Params{Node: "gw", XDSAddr: "a\nb:18000"}, `xDS address "a\nb:18000" is not HOST:PORT such as 127.0.0.1:18000`),
		Entry("a relative socket", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminSocket: "admin.sock"}, `admin socket "admin.sock" is not an absolute path of at most 107 bytes such as /run/envoy/admin.sock`),
		Entry("a long socket", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminSocket: "/" + strings.Repeat("a", 107)}, `admin socket "/`+strings.Repeat("a", 107)+`" is not an absolute path of at most 107 bytes such as /run/envoy/admin.sock`),
		Entry("a line break in the socket", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminSocket: "/a\nb"}, `admin socket "/a\nb" is not an absolute path of at most 107 bytes such as /run/envoy/admin.sock`),
		Entry("a token with a space", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", Token: "a b"}, `expected a token of letters, digits and -._~+/= only`),
		Entry("a token that Envoy would replace", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", Token: "%HOSTNAME%"}, `expected a token of letters, digits and -._~+/= only`),
		Entry("metadata of the control plane", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", Metadata: map[string]string{"gatehouse_parent": "x"}}, `metadata "gatehouse_parent": names that begin with "gatehouse_" belong to the control plane`),
		Entry("a line break in a directory", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", LogDir: "/a\nb"}, `directory for access logs "/a\nb" must be text without control characters`),
		Entry("a line break in the zone", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", Zone: "a\nb"}, `zone "a\nb" must be text without control characters`),
		Entry("a line break in a tag", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", StatsTags: map[string]string{"a": "b\nc"}}, `tag "a"="b\nc" must be text without control characters`),
		Entry("a certificate alone", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", TLS: &envoy.TLS{CA: "/ca", Cert: "/c"}}, `TLS needs the authorities of the control plane, and a certificate needs its key`),
		Entry("no certificate authorities", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", TLS: &envoy.TLS{}}, `TLS needs the authorities of the control plane, and a certificate needs its key`),
		Entry("a relative file", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", TLS: &envoy.TLS{CA: "ca.crt"}}, `file "ca.crt" is not an absolute path of text`),
		Entry("a line break in the server name", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", TLS: &envoy.TLS{CA: "/ca", ServerName: "a\nb"}}, `server name "a\nb" must be text without control characters`),
		Entry("an admin name", envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:1", AdminAddr: "localhost:9001"}, `admin address "localhost:9001" is not IP:PORT such as 127.0.0.1:9001`),
	)

	It("accepts a Unix socket for the admin endpoint", func() {
		socket := filepath.Join(GinkgoT().TempDir(), "ad min's.sock")
		out, err := envoy.Bootstrap(envoy.Params{Node: "gw", XDSAddr: "127.0.0.1:18000", AdminSocket: socket, AdminAddr: "127.0.0.1:9001"})
		Expect(err).NotTo(HaveOccurred())
		Expect(tree(out)["admin"]).To(Equal(map[string]any{
			"address": map[string]any{"pipe": map[string]any{"path": socket, "mode": 0o600}}, "ignore_global_conn_limit": true,
		}))
		validate(out)
	})

	It("tells how to start an Envoy, and a second one on the same host", func() {
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

	It("is written for the Envoy version that make envoy downloads", func() {
		out, err := exec.Command(program, "--version").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("/" + envoy.Version + "/"))
	})
})
