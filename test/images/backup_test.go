//go:build images

package images

import (
	"bytes"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// piped runs the Docker client with input, and returns its standard output alone.
func piped(input []byte, args ...string) []byte {
	GinkgoHelper()
	var out, words bytes.Buffer
	cmd := exec.CommandContext(limit(), "docker", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &words
	Expect(cmd.Run()).To(Succeed(), "%s", &words)
	return out.Bytes()
}

var _ = Describe("The volume of a container", func() {
	It("is backed up while it runs, and restored by another one, as docs/operations.md describes", func() {
		g := standalone()
		has := func(name string) int {
			GinkgoHelper()
			a, err := g.api.Get(limit(), "/upstream/"+name)
			Expect(err).NotTo(HaveOccurred())
			return a.Status
		}
		add := func(name string) {
			GinkgoHelper()
			a, err := g.api.Post(limit(), "/upstream", "Upstream_name="+name, "Upstream_ip=192.0.2.1", "Upstream_port=80")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(201), a.Body)
		}
		add("before")
		backup := piped(nil, "exec", g.name, "gatehouse", "backup", "-")
		Expect(backup).To(HavePrefix("SQLite format 3"))
		add("after")
		docker("stop", g.name)

		words := piped(backup, append(append([]string{"run", "--rm", "-i"}, hardened()...), "-v", g.volume+":/var/lib/gatehouse", standaloneImage, "restore", "-")...)
		Expect(string(words)).To(HavePrefix("restored revision 1 of standard input (schema "))
		docker("start", g.name)
		g.awaitReady()
		Expect([]int{has("before"), has("after")}).To(Equal([]int{200, 404}))
	})
})
