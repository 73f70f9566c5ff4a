package main

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

const laptop = `version: 1
upstreams:
- upstream_name: blue
  upstream_ip: blue.example.com
  upstream_port: 8080
secrets:
- secret_name: cookies
  secret_type: generic
services:
- service_name: shop
  fqdn: shop.example.com
  filters: []
  secrets: []
  routes:
  - route_name: root
    route_prefix: /
    upstreams:
    - blue
    filters: []
`

var _ = Describe("export crd and import crd", func() {
	It("take the configuration of a server to Kubernetes and back", func() {
		f := serving("GET /config", reply{200, laptop, nil})
		r := run1("", "export", "crd", "--namespace", "shop")
		Expect(r.code).To(BeZero(), r.stderr)
		Expect(r.stderr).To(Equal("warning: 1 Secrets must be created; the comments at the top say how\n"))
		Expect(r.stdout).To(HavePrefix("# Create these Secrets, whose contents are not written here:\n" +
			"# kubectl create secret generic cookies --namespace shop --from-file=value=FILE\n---\n"))
		Expect(f.calls).To(Equal([]string{"GET /config"}))
		Expect(run1(r.stdout, "import", "crd", "-")).To(Equal(result{0, laptop, ""}))
	})

	It("read files", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(strings.Replace(laptop, "secrets:\n- secret_name: cookies\n  secret_type: generic\n", "", 1)), 0o600)).To(Succeed())
		objects := good("export", "crd", filepath.Join(dir, "a.yaml"))
		Expect(os.WriteFile(filepath.Join(dir, "objects.yaml"), []byte(objects), 0o600)).To(Succeed())
		Expect(good("import", "crd", filepath.Join(dir, "objects.yaml"))).To(ContainSubstring("upstream_name: blue"))
		Expect(run1(objects+"---\n{kind: Deployment, apiVersion: apps/v1}", "import", "crd", "-").stderr).To(Equal("warning: objects of the kind Deployment are left out\n"))
		const advice = `: "kubectl get gatehouse,services,endpointslices,secrets,configmaps -o yaml" prints what is needed` + "\n"
		Expect(run1("{kind: Deployment, apiVersion: apps/v1}\n---\n{kind: Service, apiVersion: v1, metadata: {name: web}}", "import", "crd", "-")).To(Equal(result{exitBadUsage, "",
			"warning: objects of the kind Deployment are left out\n" +
				"gatehouse: there is no object of group gateway.gatehouse.dev, but Deployment, Service" + advice}))
		Expect(run1("# nothing", "import", "crd", "-")).To(Equal(result{exitBadUsage, "", "gatehouse: there is no object of group gateway.gatehouse.dev, but nothing" + advice}))
		Expect(run1("{kind: Secret, apiVersion: v1, metadata: {name: a}, data: {value: YQ==}}", "import", "crd", "-").stderr).To(
			Equal("warning: there is no object of group gateway.gatehouse.dev, but Secret" + advice))
		Expect(run1("", "import", "crd", dir)).To(Equal(result{exitBadUsage, "", "gatehouse: reading " + dir + ": it is a directory; name the files in it\n"}))
	})

	It("write what secrets hold if the key is set", func() {
		key := filepath.Join(GinkgoT().TempDir(), "secret.key")
		ring, _, err := seal.OpenOrCreate(key)
		Expect(err).NotTo(HaveOccurred())
		sealed, err := ring.Seal("open sesame", "secret/cookies/value")
		Expect(err).NotTo(HaveOccurred())
		f := serving("GET /config?secrets=sealed", reply{200, strings.Replace(laptop, "secret_type: generic\n", "secret_type: generic\n  secret_value: "+sealed+"\n", 1), nil})
		objects := good("export", "crd", "--secret-values", "--secret-key-file", key)
		Expect(f.calls).To(HaveLen(1))
		Expect(objects).To(ContainSubstring("value: b3BlbiBzZXNhbWU=\n"))
		plain := strings.Replace(laptop, "secret_type: generic\n", "secret_type: generic\n  secret_value: open sesame\n", 1)
		Expect(run1(objects, "import", "crd", "-", "--secret-values")).To(Equal(result{0, plain, ""}))
		Expect(run1(objects, "import", "crd", "-")).To(Equal(result{0, laptop, ""}))

		_, _, err = seal.OpenOrCreate(key + "2")
		Expect(err).NotTo(HaveOccurred())
		r := run1("", "export", "crd", "--secret-values", "--secret-key-file", key+"2")
		Expect(r.code).To(Equal(exitBadUsage))
		Expect(r.stdout).To(BeEmpty())
		Expect(r.stderr).To(HavePrefix("gatehouse: opening the secrets with " + key + "2: "))
	})

	It("write an address that the cluster allows", func() {
		const doc = "{version: 1, upstreams: [{upstream_name: a, upstream_ip: web.internal, upstream_port: 1}, {upstream_name: b, upstream_ip: db, upstream_port: 1}]}"
		Expect(run1(doc, "export", "crd", "-", "--upstream-allow", "10.0.0.0/8,db").stdout).To(ContainSubstring("externalName: db\n"))
	})

	DescribeTable("report what is wrong", func(stdin, want string, args ...string) {
		r := run1(stdin, args...)
		Expect(r.code).To(Equal(exitBadUsage))
		Expect(r.stdout).To(BeEmpty())
		Expect(r.stderr).To(Equal("gatehouse: " + want + "\n"))
	},
		Entry("values without the key", "", "--secret-values needs --secret-key-file FILE: a running Gatehouse shows its secrets only sealed", "export", "crd", "--secret-values"),
		Entry("a key without values", "", "--secret-key-file opens secrets that are written only with --secret-values: add it, or omit both", "export", "crd", "--secret-key-file", "a"),
		Entry("no document", "version: 2", "this is not a configuration document: the document contains errors\n  line 1: version must be 1, the only version that this program supports", "export", "crd", "-"),
		Entry("what Kubernetes cannot represent", "{version: 1, upstreams: [{upstream_name: a, upstream_ip: '::1', upstream_port: 1}]}",
			"this configuration cannot be carried to Kubernetes as it is:\n  /upstream/a: upstream_ip ::1 is the machine itself, which in a cluster is the Pod of the gateway, and Kubernetes refuses it: write an address that its nodes reach, or a host name",
			"export", "crd", "-"),
		Entry("what the control plane of a cluster refuses", "{version: 1, upstreams: [{upstream_name: a, upstream_ip: db, upstream_port: 1}]}",
			"this configuration cannot be carried to Kubernetes as it is:\n  /upstream/a: upstream_ip \"db\" is not a complete host name, and the control plane of a cluster refuses it: "+
				"change it, or name it in --upstream-allow, here and there", "export", "crd", "-"),
		Entry("a list of allowed addresses with a mistake", "", `--upstream-allow: "10.0.0.1/8" has bits after its prefix length; 10.0.0.0/8 is meant, or a single address`, "export", "crd", "--upstream-allow", "10.0.0.1/8", "-"),
		Entry("no objects", "a: b", "reading -: reading document 1: has no kind: it is not an object of Kubernetes", "import", "crd", "-"),
		Entry("objects that refer to missing objects", "{apiVersion: gateway.gatehouse.dev/v1, kind: GatewayHost, metadata: {name: a}, spec: {virtualhost: {fqdn: a.example.com}, filters: [{name: b}]}}",
			"these objects cannot be read as a configuration:\n  GatewayHost a: the RouteFilter default/b is not among the objects", "import", "crd", "-"),
	)
})
