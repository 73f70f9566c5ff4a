package app_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// xdsFiles writes a certificate of the xDS port and the authority of its clients. It
// returns the flags with their files.
func xdsFiles() map[string]string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	authority, err := testkit.NewAuthority("spec")
	Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"127.0.0.1"}})
	Expect(err).NotTo(HaveOccurred())
	flags := map[string]string{}
	for flag, content := range map[string]string{"xds-tls-cert": pair.Cert, "xds-tls-key": pair.Key, "xds-tls-client-ca": authority.PEM} {
		flags[flag] = filepath.Join(dir, flag)
		Expect(os.WriteFile(flags[flag], []byte(content), 0o600)).To(Succeed())
	}
	return flags
}

var _ = Describe("An xDS port", func() {
	const elsewhere = "0.0.0.0:0"

	It("does not start outside the loopback if no client could prove its identity", func() {
		r := serve(settings(GinkgoT().TempDir(), map[string]string{"xds-addr": elsewhere}))
		Eventually(r.done).Should(Receive(MatchError("--xds-addr 0.0.0.0:0 is not a loopback address, and clients do not authenticate there, " +
			"so everybody who reaches it could read the configuration of every proxy, private keys included: " +
			"give it a certificate with --xds-tls-cert and --xds-tls-key, and the authority of the Envoys' certificates with --xds-tls-client-ca " +
			"(gatehouse pki makes them), or allow it with --insecure-xds")))
	})

	DescribeTable("starts", func(flags func() map[string]string, addr, want string) {
		all := flags()
		all["xds-addr"] = addr
		r := serve(settings(GinkgoT().TempDir(), all))
		r.port()
		if want == "" {
			Expect(string(r.log.Contents())).NotTo(ContainSubstring("xds port"))
			return
		}
		Expect(r.log).To(gbytes.Say(want))
	},
		Entry("on loopback", func() map[string]string { return map[string]string{} }, "127.0.0.1:0", ""),
		Entry("elsewhere on request, with a warning", func() map[string]string { return map[string]string{"insecure-xds": "true"} }, elsewhere,
			`level=WARN msg="everybody who reaches the xds port can read every configuration, private keys included" xds=\S+ reason=--insecure-xds`),
		Entry("elsewhere with a certificate and authorities", xdsFiles, elsewhere,
			`level=INFO msg="clients of the xds port authenticate" xds=\S+ by="certificate or token"`),
		Entry("elsewhere with a certificate alone", func() map[string]string {
			flags := xdsFiles()
			delete(flags, "xds-tls-client-ca")
			return flags
		}, elsewhere, `level=INFO msg="clients of the xds port authenticate" xds=\S+ by=token`),
	)

	It("does not start with unusable files", func() {
		flags := xdsFiles()
		Expect(os.WriteFile(flags["xds-tls-client-ca"], []byte("nothing"), 0o600)).To(Succeed())
		r := serve(settings(GinkgoT().TempDir(), flags))
		Eventually(r.done).Should(Receive(MatchError("reading --xds-tls-client-ca " + flags["xds-tls-client-ca"] + ": the file has no certificate in PEM")))
		Expect(os.Remove(flags["xds-tls-key"])).To(Succeed())
		r = serve(settings(GinkgoT().TempDir(), flags))
		Eventually(r.done).Should(Receive(MatchError(And(ContainSubstring("--xds-tls-key "+flags["xds-tls-key"]), ContainSubstring("the user that runs the program needs to read it")))))
	})
})
