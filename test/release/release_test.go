package release_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestRelease(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "A release")
}

const root = "../.."

// do runs a command in a directory, and returns its output.
func do(dir, name string, args ...string) string {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ARCHES="+runtime.GOARCH)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	Expect(cmd.Run()).To(Succeed(), "%s %q: %s", name, args, errOut.String())
	return out.String()
}

func read(parts ...string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(parts...))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// elsewhere is a copy of the checkout in another folder.
func elsewhere() string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "copy")
	here, err := filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	do(".", "git", "clone", "--quiet", "--local", here, dir)
	if changes := do(here, "git", "diff", "--binary", "HEAD"); changes != "" {
		patch := filepath.Join(GinkgoT().TempDir(), "changes")
		Expect(os.WriteFile(patch, []byte(changes), 0o600)).To(Succeed())
		do(dir, "git", "apply", patch)
	}
	// It has Envoy already.
	Expect(os.MkdirAll(filepath.Join(dir, "bin"), 0o750)).To(Succeed())
	Expect(os.Symlink(filepath.Join(here, "bin", "tools"), filepath.Join(dir, "bin", "tools"))).To(Succeed())
	return dir
}

var _ = Describe("A release", Ordered, func() {
	var out string

	BeforeAll(func() {
		out = GinkgoT().TempDir()
		do(root, "hack/release.sh", "v0.2.0", out)
	})

	It("has what people install, and checksums of it", func() {
		var names []string
		for line := range strings.Lines(read(out, "SHA256SUMS")) {
			names = append(names, strings.Fields(line)[1])
		}
		a := runtime.GOARCH
		Expect(names).To(Equal([]string{
			"gatehouse-0.2.0-linux-" + a + ".cdx.json", "gatehouse-0.2.0-linux-" + a + ".tar.gz", "gatehouse-chart-0.2.0.tgz",
			"gatehouse-control-plane-image-0.2.0.tar", "gatehouse-image-0.2.0.tar", "gatehouse_0.2.0_" + a + ".deb", "gateway.schema.json", "images.txt", "openapi.yaml",
		}))
		do(out, "sha256sum", "--check", "--strict", "SHA256SUMS")
	})

	It("is the same, byte by byte, from another folder", func() {
		other := GinkgoT().TempDir()
		do(elsewhere(), "hack/release.sh", "v0.2.0", other)
		Expect(read(other, "SHA256SUMS")).To(Equal(read(out, "SHA256SUMS")))
	})

	It("has an archive whose program serves with the Envoy beside it", func() {
		dir := GinkgoT().TempDir()
		do(dir, "tar", "-xzf", filepath.Join(out, "gatehouse-0.2.0-linux-"+runtime.GOARCH+".tar.gz"), "--strip-components=1")
		Expect(do(dir, "./gatehouse", "version")).To(HavePrefix("gatehouse v0.2.0\n"))
		By("with the documentation in it, whose files have their names in the clear")
		Expect(strings.Contains(read(dir, "gatehouse"), "search/search_index.json")).To(BeTrue())
		Expect(do(dir, "./envoy", "--version")).To(ContainSubstring("/1.39.3/"))
		for _, file := range []string{"completions/gatehouse.bash", "completions/_gatehouse", "man/gatehouse.1.gz", "doc/LICENSE", "doc/notices.txt", "systemd/gatehouse.service"} {
			Expect(filepath.Join(dir, file)).To(BeAnExistingFile())
		}
	})

	It("has a Debian package with the units, which run its programs, and settings that stay", func() {
		file := filepath.Join(out, "gatehouse_0.2.0_"+runtime.GOARCH+".deb")
		Expect(do(".", "dpkg-deb", "--field", file, "Package", "Version", "Architecture", "Depends")).To(Equal(
			"Package: gatehouse\nVersion: 0.2.0\nArchitecture: " + runtime.GOARCH + "\nDepends: libc6 (>= 2.31), passwd\n"))
		Expect(do(".", "dpkg-deb", "--info", file, "conffiles")).To(Equal("/etc/gatehouse/gatehouse.yaml\n"))
		dir := GinkgoT().TempDir()
		do(".", "dpkg-deb", "--extract", file, dir)
		Expect(do(dir, "usr/bin/gatehouse", "version")).To(HavePrefix("gatehouse v0.2.0\n"))
		Expect(read(dir, "lib/systemd/system/gatehouse.service")).To(And(
			ContainSubstring("\nExecStart=/usr/bin/gatehouse standalone --config /etc/gatehouse/gatehouse.yaml\n"),
			ContainSubstring("\nEnvironment=GATEHOUSE_ENVOY=/usr/lib/gatehouse/envoy ")))
		info, err := os.Stat(filepath.Join(dir, "usr/lib/gatehouse/envoy"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(BeEquivalentTo(0o755))
		// The settings are valid: none is set.
		Expect(do(dir, "usr/bin/gatehouse", "bootstrap", "--config", "etc/gatehouse/gatehouse.yaml")).To(ContainSubstring("gatehouse_xds"))
	})

	It("has a chart that Helm installs from the archive, with the version of the release", func() {
		helm, err := testkit.Binary("kubernetes/helm")
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(out, "gatehouse-chart-0.2.0.tgz")
		Expect(do(".", helm, "show", "chart", file)).To(And(ContainSubstring("\nversion: 0.2.0\n"), ContainSubstring("appVersion: 0.2.0\n")))
		Expect(do(".", helm, "template", "gw", file, "--kube-version", "1.36.3", "--set", "kubernetes.allNamespaces=true")).To(ContainSubstring("app.kubernetes.io/version: \"0.2.0\""))
	})

	It("has images, each with an index of all architectures whose digest it names", func() {
		for line := range strings.Lines(read(out, "images.txt")) {
			digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			name, version, _ := strings.Cut(name, ":")
			Expect(version).To(Equal("0.2.0"))
			file := filepath.Join(out, name+"-image-0.2.0.tar")
			var top, index struct {
				Manifests []struct {
					Digest      string
					Annotations map[string]string
					Platform    struct{ Os, Architecture string }
				}
			}
			Expect(json.Unmarshal([]byte(do(".", "tar", "-xOf", file, "index.json")), &top)).To(Succeed())
			Expect(top.Manifests).To(HaveLen(1))
			Expect(top.Manifests[0].Digest).To(Equal(digest))
			Expect(top.Manifests[0].Annotations).To(HaveKeyWithValue("org.opencontainers.image.ref.name", "0.2.0"))
			Expect(json.Unmarshal([]byte(do(".", "tar", "-xOf", file, "blobs/"+strings.Replace(digest, ":", "/", 1))), &index)).To(Succeed())
			Expect(index.Manifests).To(HaveLen(1))
			Expect(index.Manifests[0].Platform.Os + "/" + index.Manifests[0].Platform.Architecture).To(Equal("linux/" + runtime.GOARCH))
		}
	})

	It("needs a version", func() {
		for _, version := range []string{"", "0.2.0", "v0.2", "v0.2.0 ", "v01.2.3", "v0.2.0/../x"} {
			cmd := exec.CommandContext(context.Background(), "hack/release.sh", version) //nolint:gosec // the project's own script
			cmd.Dir = root
			answer, err := cmd.CombinedOutput()
			Expect(err).To(HaveOccurred(), version)
			Expect(string(answer)).To(Equal("error: \"" + version + "\" is no version such as v0.2.0 or v0.2.0-rc.1; run: make release VERSION=v0.2.0\n"))
		}
	})
})
