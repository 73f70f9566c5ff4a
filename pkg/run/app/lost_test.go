package app_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A new database next to a key that is not new", func() {
	var dir string
	// ready starts a server, stops it and returns the status of its GET /ready.
	ready := func(flags map[string]string) int {
		GinkgoHelper()
		r, stop := serveUntil(settings(dir, flags))
		url := "http://127.0.0.1:" + r.port() + "/ready"
		var code int
		Eventually(func() string {
			var answer string
			code, answer = call("GET", url, "", "")
			return answer
		}).ShouldNot(ContainSubstring("not loaded yet"))
		end(r, stop)
		return code
	}
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		Expect(ready(nil)).To(Equal(200), "both are new")
		Expect(ready(nil)).To(Equal(200), "and it is still the same")
	})

	It("seems lost, until the program is told that it is not", func() {
		Expect(os.Remove(filepath.Join(dir, "gatehouse.db"))).To(Succeed())
		Expect(ready(nil)).To(Equal(503))
		Expect(ready(nil)).To(Equal(503))
		Expect(ready(map[string]string{"allow-empty": "true"})).To(Equal(200))
		Expect(ready(nil)).To(Equal(200))
	})

	It("is really new if it is elsewhere, or if the key was copied there", func() {
		Expect(os.Remove(filepath.Join(dir, "gatehouse.db"))).To(Succeed())
		other := func() string { return "sqlite://" + filepath.Join(GinkgoT().TempDir(), "other.db") }
		Expect(ready(map[string]string{"database-url": other()})).To(Equal(200))
		key := filepath.Join(dir, "secret.key")
		dir = GinkgoT().TempDir()
		Expect(ready(map[string]string{"secret-key-file": key})).To(Equal(200))
	})

	It("seems lost with nothing but the certificates of a directory, across restarts, until there is more", func() {
		certs := GinkgoT().TempDir()
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(certs, "shop.crt"), []byte(pair.Cert), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(certs, "shop.key"), []byte(pair.Key), 0o600)).To(Succeed())
		Expect(os.Remove(filepath.Join(dir, "gatehouse.db"))).To(Succeed())
		flags := map[string]string{"tls-dir": certs}
		r, stop := serveUntil(settings(dir, flags))
		url := "http://127.0.0.1:" + r.port()
		Eventually(func() int { code, _ := call("GET", url+"/secret/shop", "", ""); return code }).Should(Equal(200))
		Eventually(func() string { _, answer := call("GET", url+"/status", "", ""); return answer }).Should(ContainSubstring(`"built_revision":1`))
		code, answer := call("GET", url+"/ready", "", "")
		Expect(code).To(Equal(503), answer)
		Expect(answer).To(ContainSubstring("Envoys are held"))
		end(r, stop)
		Expect(ready(flags)).To(Equal(503))
		r, stop = serveUntil(settings(dir, flags))
		url = "http://127.0.0.1:" + r.port()
		code, answer = call("POST", url+"/proxy", formType, "Name=gw")
		Expect(code).To(Equal(201), answer)
		Eventually(func() int { code, _ := call("GET", url+"/ready", "", ""); return code }).Should(Equal(200))
		end(r, stop)
		Expect(ready(flags)).To(Equal(200))
	})

	It("is in use again after its first write", func() {
		Expect(os.Remove(filepath.Join(dir, "gatehouse.db"))).To(Succeed())
		r, stop := serveUntil(settings(dir, nil))
		url := "http://127.0.0.1:" + r.port()
		Eventually(func() string { _, answer := call("GET", url+"/ready", "", ""); return answer }).Should(ContainSubstring("Envoys are held"))
		code, answer := call("POST", url+"/proxy", formType, "Name=gw")
		Expect(code).To(Equal(201), answer)
		Eventually(func() int { code, _ := call("GET", url+"/ready", "", ""); return code }).Should(Equal(200))
		end(r, stop)
		Expect(ready(nil)).To(Equal(200))
	})
})

// end stops a server and waits until it has stopped.
func end(r *running, stop context.CancelFunc) {
	GinkgoHelper()
	stop()
	Eventually(r.done).Should(BeClosed())
}
