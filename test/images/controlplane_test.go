//go:build images

package images

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The container of the control plane", func() {
	It("configures an Envoy elsewhere", func() {
		api, xds, port := freePort(), freePort(), freePort()
		name := start(append(hardened(), "--network", "host", "--health-interval", "1s", "--volume", newVolume()+":/var/lib/gatehouse",
			"--env", fmt.Sprint("GATEHOUSE_API_ADDR=127.0.0.1:", api), "--env", fmt.Sprint("GATEHOUSE_XDS_ADDR=127.0.0.1:", xds), controlPlaneImage)...)
		g := gateway{name: name, api: testkit.API{URL: fmt.Sprint("http://127.0.0.1:", api)}, http: fmt.Sprint("127.0.0.1:", port)}
		g.awaitReady()
		Eventually(func() string { return docker("inspect", "--format", "{{.State.Health.Status}}", name) }).Should(Equal("healthy"))

		envoy, err := testkit.StartEnvoy(limit(), GinkgoT().TempDir(), "gw", fmt.Sprint("127.0.0.1:", xds))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(envoy.Kill)
		g.route(backend("web", "127.0.0.1"), "Listen_ip=127.0.0.1", fmt.Sprint("Http_port=", port))
		Eventually(g.get).Should(Equal("200 web"))

		docker("stop", name)
		Expect(docker("inspect", "--format", "{{.State.ExitCode}}", name)).To(Equal("0"))
		Expect(g.get()).To(Equal("200 web"), "traffic does not depend on the control plane")
	})
})
