//go:build images

package images

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// like is what the images of a release and of the engine must agree on.
type like struct {
	Architecture, Os string
	Config           struct {
		User, StopSignal      string
		Entrypoint, Cmd, Env  []string
		Volumes, ExposedPorts map[string]any
		Healthcheck           struct {
			Test                           []string
			Interval, Timeout, StartPeriod int64
		}
		Labels map[string]string
	}
}

func likeOf(image string) like {
	GinkgoHelper()
	var l like
	inspected(image, &l)
	delete(l.Config.Labels, "org.opencontainers.image.version")
	delete(l.Config.Labels, "org.opencontainers.image.revision")
	return l
}

// sums returns the files of an image: owner, mode and checksum.
func sums(image string) map[string][3]any {
	GinkgoHelper()
	all := map[string][3]any{}
	for path, f := range content(image) {
		all[path] = [3]any{f.header.Uid, f.header.Mode, sha256.Sum256(f.data)}
	}
	return all
}

var _ = Describe("The images of a release", func() {
	It("are those that the engine builds, and load into it", func() {
		from, out := GinkgoT().TempDir(), GinkgoT().TempDir()
		here, err := filepath.Abs("../../bin/image")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Symlink(here, filepath.Join(from, runtime.GOARCH))).To(Succeed())
		cmd := exec.CommandContext(limit(), "go", "run", ".", "images", "v9.9.9", from, out) //nolint:gosec // the project's own program
		cmd.Dir = "../../hack/release"
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1", "COMMIT=0123456789abcdef0123456789abcdef01234567")
		cmd.Stderr = GinkgoWriter
		digests, err := cmd.Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(digests)).To(MatchRegexp(`^sha256:[0-9a-f]{64}  gatehouse-control-plane:9\.9\.9\nsha256:[0-9a-f]{64}  gatehouse:9\.9\.9\n$`))
		for name, image := range map[string]string{"gatehouse": standaloneImage, "gatehouse-control-plane": controlPlaneImage} {
			docker("load", "--input", filepath.Join(out, name+"-image-9.9.9.tar"))
			loaded := name + ":9.9.9-" + runtime.GOARCH
			DeferCleanup(func() { _, _ = tryDocker("rmi", loaded) })
			Expect(likeOf(loaded)).To(Equal(likeOf(image)))
			Expect(sums(loaded)).To(Equal(sums(image)))
			Expect(docker("inspect", "--format", `{{index .Config.Labels "org.opencontainers.image.version"}} {{index .Config.Labels "org.opencontainers.image.revision"}}`, loaded)).
				To(Equal("v9.9.9 0123456789abcdef0123456789abcdef01234567"))
		}
	})
})
