//go:build images

package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// file is a file of an image.
type file struct {
	header *tar.Header
	data   []byte
}

// content returns the files of an image by path, except those that the engine adds to each
// container.
func content(image string) map[string]file {
	GinkgoHelper()
	// Without a network, because the engine warns about one on a machine that forwards
	// nothing.
	name := docker("create", "--network", "none", image)
	DeferCleanup(func() { docker("rm", "--force", "--volumes", name) })
	cmd := exec.CommandContext(limit(), "docker", "export", name)
	out, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Start()).To(Succeed())
	files := map[string]file{}
	for r := tar.NewReader(out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		switch h.Name {
		case ".dockerenv", "dev/console", "etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf":
			Expect(h.Size).To(BeZero(), h.Name)
			continue
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		data, err := io.ReadAll(r)
		Expect(err).NotTo(HaveOccurred())
		files["/"+h.Name] = file{h, data}
	}
	_, err = io.Copy(io.Discard, out)
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Wait()).To(Succeed())
	return files
}

// bom is the part of an SBOM (CycloneDX 1.5) that the specs read.
type bom struct {
	Format     string `json:"bomFormat"`
	Spec       string `json:"specVersion"`
	Components []struct {
		Name, Version, PURL, CPE string
		Hashes                   []struct{ Alg, Content string }
		Evidence                 struct{ Occurrences []struct{ Location string } }
	}
}

func (b bom) version(name string) string {
	for _, c := range b.Components {
		if c.Name == name {
			return c.Version
		}
	}
	return "none"
}

// config says how an image is run.
type config struct {
	Config struct {
		User, StopSignal string
		Entrypoint, Cmd  []string
		Volumes          map[string]any
		Labels           map[string]string
		Healthcheck      struct{ Test []string }
		Env              []string
	}
}

var _ = DescribeTable("The image", func(image, command, title string, programs, libraries []string) {
	By("describes how it is run")
	var c config
	inspected(image, &c)
	Expect(c.Config.User).To(Equal("10001:10001"))
	Expect(c.Config.StopSignal).To(Equal("SIGTERM"))
	Expect(c.Config.Entrypoint).To(Equal([]string{"/usr/local/bin/gatehouse"}))
	Expect(c.Config.Cmd).To(Equal([]string{command}))
	Expect(c.Config.Volumes).To(And(HaveLen(1), HaveKey("/var/lib/gatehouse")))
	Expect(c.Config.Healthcheck.Test).To(Equal([]string{"CMD", "/usr/local/bin/gatehouse", "ready"}))

	By("has labels")
	version, _, _ := strings.Cut(docker("run", "--rm", "--network", "none", image, "--version"), "\n")
	version = strings.TrimPrefix(version, "gatehouse ")
	labels := c.Config.Labels
	Expect(labels).To(HaveKeyWithValue("org.opencontainers.image.title", title))
	Expect(labels).To(HaveKeyWithValue("org.opencontainers.image.version", version))
	Expect(labels["org.opencontainers.image.revision"]).To(MatchRegexp(`^[0-9a-f]{40}$`))
	Expect(labels).To(HaveKeyWithValue("org.opencontainers.image.licenses", "Apache-2.0"))
	Expect(labels).To(HaveKey("org.opencontainers.image.source"))
	Expect(labels).To(HaveKey("org.opencontainers.image.documentation"))
	Expect(labels).To(HaveKey("org.opencontainers.image.description"))

	By("holds no other program")
	files := content(image)
	var runs []string
	for path, f := range files {
		Expect(f.header.Typeflag).To(Equal(byte(tar.TypeReg)), path)
		Expect(f.header.Mode&0o6022).To(BeZero(), "no setuid, no setgid, not writable by others: "+path)
		Expect(f.header.Uid).To(BeZero(), path)
		if f.header.Mode&0o111 != 0 {
			runs = append(runs, path)
		}
		if !strings.HasPrefix(path, "/lib") && bytes.HasPrefix(f.data, []byte("\x7fELF")) {
			Expect(programs).To(ContainElement(path))
		}
		Expect(bytes.HasPrefix(f.data, []byte("#!"))).To(BeFalse(), "a script: "+path)
	}
	Expect(runs).To(ConsistOf(programs))

	By("has an SBOM of its contents")
	var b bom
	Expect(json.Unmarshal(files["/usr/share/doc/gatehouse/sbom.cdx.json"].data, &b)).To(Succeed())
	Expect(b.Format + " " + b.Spec).To(Equal("CycloneDX 1.5"))
	Expect(b.version("gatehouse")).To(Equal(version))
	info, err := buildinfo.Read(bytes.NewReader(files["/usr/local/bin/gatehouse"].data))
	Expect(err).NotTo(HaveOccurred())
	Expect(len(info.Deps)).To(BeNumerically(">", 40))
	for _, m := range info.Deps {
		Expect(b.version(m.Path)).To(Equal(m.Version), m.Path)
	}
	Expect("go" + b.version("stdlib")).To(Equal(info.GoVersion))
	var known []string
	for _, c := range b.Components {
		for _, o := range c.Evidence.Occurrences {
			known = append(known, o.Location)
			Expect(files).To(HaveKey(o.Location))
		}
		Expect(c.PURL).To(HavePrefix("pkg:"), c.Name)
		for _, h := range c.Hashes {
			sum := sha256.Sum256(files[c.Evidence.Occurrences[0].Location].data)
			Expect(h.Content).To(Equal(hex.EncodeToString(sum[:])), c.Name)
		}
	}
	Expect(known).To(ContainElements(runs))

	By("holds nothing else except licenses and notes")
	notes := []string{
		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf",
		"/usr/share/doc/ca-certificates/copyright", "/usr/share/doc/gatehouse/LICENSE", "/usr/share/doc/gatehouse/gatehouse.txt",
		"/usr/share/doc/gatehouse/sbom.cdx.json", "/var/lib/dpkg/status.d/ca-certificates",
	}
	libraries = append(libraries, "/etc/ssl/certs/ca-certificates.crt")
	if image == standaloneImage {
		notes = append(notes, "/usr/share/doc/envoy/LICENSE", "/usr/share/doc/envoy/NOTICE", "/usr/share/doc/libc6/copyright", "/var/lib/dpkg/status.d/libc6")
		Expect(b.version("envoy")).To(Equal("1.39.3"))
		Expect(b.version("libc6")).To(HavePrefix("2.36-9+deb12u"))
	}
	Expect(known).To(ConsistOf(append(libraries, programs...)))
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	Expect(paths).To(ConsistOf(append(notes, known...)))
	Expect(bytes.Count(files["/etc/ssl/certs/ca-certificates.crt"].data, []byte("BEGIN CERTIFICATE"))).To(BeNumerically(">", 100))

	By("is small")
	size := compressed(image)
	say("%s: %.1f MB compressed, of %d MB", image, float64(size)/1e6, budget/1_000_000)
	Expect(size).To(BeNumerically("<", budget))
},
	Entry("with Envoy", standaloneImage, "standalone", "Gatehouse",
		[]string{"/usr/local/bin/gatehouse", "/usr/local/bin/envoy", "/lib64/ld-linux-x86-64.so.2"},
		[]string{
			"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libm.so.6",
			"/lib/x86_64-linux-gnu/libpthread.so.0", "/lib/x86_64-linux-gnu/librt.so.1",
		}),
	Entry("of the control plane", controlPlaneImage, "serve", "Gatehouse control plane", []string{"/usr/local/bin/gatehouse"}, []string{}),
)

// compressed returns the size of an image in a registry: its compressed layers.
func compressed(image string) int {
	GinkgoHelper()
	cmd := exec.CommandContext(limit(), "sh", "-c", `docker save "$0" | gzip -6 | wc -c`, image)
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred())
	size, err := strconv.Atoi(strings.TrimSpace(string(out)))
	Expect(err).NotTo(HaveOccurred())
	return size
}
