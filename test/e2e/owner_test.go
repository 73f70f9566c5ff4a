package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A data directory with an SQLite database", func() {
	It("has one server, and a second one takes nothing away from it", func() {
		dir, port := GinkgoT().TempDir(), freePort()
		g := start(nil, standaloneArgs(dir, port)...)
		gw := gateway{g.API, port}
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		post(g.API, "/proxy", "Name=gw")
		post(g.API, "/proxy/gw/service/shop")
		gw.expect("shop.example", "/", "blue")
		var proxy string
		Eventually(func() string { proxy = read(g.API, "/proxy/gw"); return proxy }).
			Should(ContainSubstring(`"code":"Programmed","status":true`), "Envoy has acknowledged everything")
		revisions := read(g.API, "/revision")

		link := filepath.Join(GinkgoT().TempDir(), "link")
		Expect(os.Symlink(dir, link)).To(Succeed())
		database := filepath.Join(dir, "gatehouse.db")
		line := fmt.Sprintf("gatehouse: the database %s is used by process %d (gatehouse standalone), and one server at a time may use an SQLite file "+
			"(stop that process, choose another directory with --data-dir, or use PostgreSQL with --database-url, which several servers may share)", database, g.Pid())
		serveArgs := []string{"serve", "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0"}
		Expect(refuses(1, nil, standaloneArgs(dir, freePort())...)).To(Equal(line))
		Expect(refuses(1, nil, standaloneArgs(link, freePort())...)).To(Equal(line))
		Expect(refuses(1, nil, append(serveArgs, "--data-dir", dir)...)).To(Equal(line))
		Expect(refuses(1, nil, append(serveArgs, "--data-dir", GinkgoT().TempDir(), "--database-url", "sqlite://"+database)...)).To(Equal(line))

		Expect(read(g.API, "/proxy/gw")).To(Equal(proxy))
		Expect(read(g.API, "/revision")).To(Equal(revisions))
		gw.expect("shop.example", "/", "blue")

		By("until it stops, in whatever way")
		Expect(g.Kill()).To(Succeed())
		g = start(nil, standaloneArgs(dir, port)...)
		gw.expect("shop.example", "/", "blue")
		Expect(g.Stop(limit())).To(BeZero())
		start(nil, append(serveArgs, "--data-dir", dir)...)
	})
})
