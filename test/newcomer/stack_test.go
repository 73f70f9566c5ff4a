package newcomer_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The stack itself runs in test/images/stack. Here a program stands for Docker: what matters is what is said before it
// has any work.
var _ = Describe("hack/stack.sh", func() {
	var dir string
	BeforeEach(func() { dir = GinkgoT().TempDir() })
	// stack runs a command with a Docker that does what a script says.
	stack := func(docker, command string, env ...string) (string, error) {
		GinkgoHelper()
		program := filepath.Join(dir, "docker")
		Expect(os.WriteFile(program, []byte("#!/bin/sh\n"+docker+"\n"), 0o700)).To(Succeed())
		cmd := exec.Command("../../hack/stack.sh", strings.Fields(command)...)
		cmd.Env = append(os.Environ(), "DOCKER="+program, "STACK_ENV="+filepath.Join(dir, "env"), "PROFILES=", "IMAGES=")
		for _, port := range []string{"API", "EDGE", "EDGE_TLS", "INNER", "LOGIN", "PROMETHEUS"} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			Expect(err).NotTo(HaveOccurred())
			cmd.Env = append(cmd.Env, fmt.Sprintf("STACK_%s_PORT=%d", port, l.Addr().(*net.TCPAddr).Port))
			Expect(l.Close()).To(Succeed())
		}
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const works = "case $1 in version) echo 27.0 ;; esac"

	DescribeTable("says what is wrong before it builds anything", func(docker string, env []string, want string) {
		out, err := stack(docker, "check", env...)
		Expect(err).To(HaveOccurred())
		Expect(out).To(Equal("error: " + want + "\n"))
	},
		Entry("a profile with a typo", works, []string{"PROFILES=oidc obsrve"}, "PROFILES: there is no profile obsrve; the profiles are oidc and observe"),
		Entry("images from nowhere", works, []string{"IMAGES=locl"}, "IMAGES=locl: images are local (built here) or public (from their registries)"),
		Entry("no Docker", works, []string{"DOCKER=no-such-docker"},
			"Docker is needed, and there is no program no-such-docker: install Docker Engine (https://docs.docker.com/engine/install/), or name the program with DOCKER"),
		Entry("no engine", "echo 'Cannot connect to the Docker daemon' >&2; exit 1", nil,
			"the Docker engine does not answer: start it (systemctl start docker), or name another one with DOCKER_HOST (Cannot connect to the Docker daemon)"),
		Entry("no right to use it", "echo 'permission denied while trying to connect' >&2; exit 1", nil,
			"this user may not use the Docker engine: run this as root, or add the user to the group docker (permission denied while trying to connect)"),
	)

	It("names the setting of a port that is taken, unless the stack itself has it", func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
		port := l.Addr().(*net.TCPAddr).Port
		taken := fmt.Sprintf("STACK_INNER_PORT=%d", port)
		out, err := stack(works, "check", taken)
		Expect(err).To(HaveOccurred())
		Expect(out).To(Equal(fmt.Sprintf("error: port %d (STACK_INNER_PORT) is used by another program: stop that, or choose another port, as in STACK_INNER_PORT=%d make up\n", port, port+1000)))
		out, err = stack(fmt.Sprintf("case $1 in ps) echo '127.0.0.1:%d->8080/tcp' ;; esac", port), "check", taken)
		Expect(err).NotTo(HaveOccurred(), out)
		out, err = stack(works, "check", strings.Replace(taken, "INNER", "PROMETHEUS", 1))
		Expect(err).NotTo(HaveOccurred(), "nothing listens there without its profile: %s", out)
	})

	It("takes another port from the environment although .env has one", func() {
		settings := filepath.Join(dir, "env")
		Expect(os.WriteFile(settings, []byte("STACK_NAME=first\nSTACK_EDGE_PORT=1\nPOSTGRES_PASSWORD=kept\n"), 0o600)).To(Succeed())
		// It stops where the first program is needed that the checkout may lack.
		out, err := stack("case \"$1 $2\" in 'compose version') ;; compose*) exit 7 ;; esac", "up", "STACK_EDGE_PORT=28080", "STACK_NAME=second")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("has STACK_EDGE_PORT=28080 now"))
		text, err := os.ReadFile(settings)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(And(HavePrefix("STACK_NAME=first\nSTACK_EDGE_PORT=28080\nPOSTGRES_PASSWORD=kept\n"), ContainSubstring("\nSTACK_IMAGES=public\n")))
	})

	DescribeTable("says at the end whether the volumes stay", func(args, want string) {
		settings := filepath.Join(dir, "env")
		Expect(os.WriteFile(settings, []byte("STACK_NAME=first\nSTACK_DIR=/there\nSTACK_IMAGES=public\n"), 0o600)).To(Succeed())
		out, err := stack("", "down"+args)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(Equal(fmt.Sprintf(want, settings)))
	},
		Entry("they do", "", "the stack is down; its volumes, %s and /there stay\n"),
		Entry("they do not", " --volumes", "the stack is down, and its volumes are removed; %s and /there stay, and the next make up uses their passwords\n"),
		Entry("they do not, in short", " -v", "the stack is down, and its volumes are removed; %s and /there stay, and the next make up uses their passwords\n"),
	)
})

var _ = Describe("hack/pin-images.sh", func() {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const before = "# images\npostgres postgres:15-bookworm\nnginx nginx:stable sha256:old\n"
	pin := func(docker string, args ...string) (file string, err error) {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+docker+"\n"), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "images"), []byte(before), 0o600)).To(Succeed())
		cmd := exec.Command("../../hack/pin-images.sh", args...)
		cmd.Env = append(os.Environ(), "DOCKER="+filepath.Join(dir, "docker"), "IMAGES_FILE="+filepath.Join(dir, "images"))
		_, err = cmd.CombinedOutput()
		text, readErr := os.ReadFile(filepath.Join(dir, "images"))
		Expect(readErr).NotTo(HaveOccurred())
		return string(text), err
	}

	It("writes what the registries report", func() {
		file, err := pin("echo " + digest)
		Expect(err).NotTo(HaveOccurred())
		Expect(file).To(Equal("# images\npostgres postgres:15-bookworm " + digest + "\nnginx nginx:stable " + digest + "\n"))
	})

	DescribeTable("changes nothing", func(docker string, args ...string) {
		file, err := pin(docker, args...)
		Expect(err).To(HaveOccurred())
		Expect(file).To(Equal(before))
	},
		Entry("without a registry", "exit 1"),
		Entry("after an answer that is no digest", "echo sha256:123"),
		Entry("if one of them does not answer", "case $* in *nginx*) exit 1 ;; esac; echo "+digest),
		Entry("when it only checks", "echo "+digest, "--check"),
	)
})
