package app

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The authorities of upstreams", func() {
	var dir, pem string
	file := func(name, text string) string {
		GinkgoHelper()
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return path
	}
	env := func(value string) func(string) string {
		return func(name string) string { return map[string]string{"SSL_CERT_FILE": value}[name] }
	}
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		pem = authority.PEM
	})

	It("are those of the setting, of SSL_CERT_FILE or of the first usual place that has some", func() {
		a, b, c := file("a", pem), file("b", "# b\n"+pem+pem), file("c", pem)
		broken := strings.Replace(pem, "MII", "MIJ", 1) // with a length beyond the data
		gone := filepath.Join(dir, "gone")
		for _, from := range []struct {
			setting, variable string
			usual             []string
		}{{a, gone, nil}, {"", b, []string{gone}}, {"", "", []string{gone, file("empty", ""), c}}, {file("d", broken+"junk\n"+pem), "", nil}} {
			Expect(readAuthorities(from.setting, env(from.variable), from.usual)).To(Equal(pem))
		}
		Expect(readAuthorities("", env(""), []string{gone})).To(BeEmpty())
	})

	It("are an error if the named file has none", func() {
		empty, gone := file("empty", "text\n"), filepath.Join(dir, "gone")
		_, err := readAuthorities(gone, env(""), nil)
		Expect(err).To(MatchError("--upstream-ca-file: reading the certificate authorities for upstreams: open " + gone + ": no such file or directory"))
		_, err = readAuthorities("", env(empty), []string{file("usual", pem)})
		Expect(err).To(MatchError("SSL_CERT_FILE: reading the certificate authorities for upstreams: " + empty + " has no PEM certificate (-----BEGIN CERTIFICATE-----)"))
	})
})
