//go:build images

package images

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// controlPlane runs a container of the image of the control plane, and returns where
// its Envoys connect. Its proxy gw listens on a free port.
func controlPlane() (g gateway, xds, port int) {
	GinkgoHelper()
	api, xds, port := freePort(), freePort(), freePort()
	name := start(append(hardened(), "--network", "host", "--health-interval", "1s", "--volume", newVolume()+":/var/lib/gatehouse",
		"--env", fmt.Sprint("GATEHOUSE_API_ADDR=127.0.0.1:", api), "--env", fmt.Sprint("GATEHOUSE_XDS_ADDR=127.0.0.1:", xds), controlPlaneImage)...)
	g = gateway{name: name, api: testkit.API{URL: fmt.Sprint("http://127.0.0.1:", api)}, http: fmt.Sprint("127.0.0.1:", port)}
	g.awaitReady()
	return g, xds, port
}

func health(name string) string {
	GinkgoHelper()
	return docker("inspect", "--format", "{{.State.Health.Status}}", name)
}

var _ = Describe("The container of the control plane", func() {
	It("configures an Envoy elsewhere, which does not need it for its traffic", func() {
		g, xds, port := controlPlane()
		Eventually(health).WithArguments(g.name).Should(Equal("healthy"))
		envoy, err := testkit.StartEnvoy(limit(), GinkgoT().TempDir(), "gw", fmt.Sprint("127.0.0.1:", xds))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(envoy.Kill)
		g.route(backend("web", "127.0.0.1"), "Listen_ip=127.0.0.1", fmt.Sprint("Http_port=", port))
		Eventually(g.get).Should(Equal("200 web"))

		docker("stop", g.name)
		Expect(docker("inspect", "--format", "{{.State.ExitCode}}", g.name)).To(Equal("0"))
		Expect(g.get()).To(Equal("200 web"))
	})

	DescribeTable("configures a container that runs only an Envoy, which is healthy and stops cleanly", func(setting, process string) {
		g, xds, port := controlPlane()
		envoy := start(append(hardened(), "--network", "host", "--health-interval", "1s", "--env", "GATEHOUSE_PROXY=gw",
			"--env", fmt.Sprint("GATEHOUSE_XDS_ADDR=127.0.0.1:", xds), "--env", fmt.Sprint("GATEHOUSE_ADMIN_ADDR=127.0.0.1:", freePort()), "--env", setting, standaloneImage, "envoy")...)
		g.route(backend("web", "127.0.0.1"), "Listen_ip=127.0.0.1", fmt.Sprint("Http_port=", port))
		Eventually(g.get).Should(Equal("200 web"))
		Eventually(health).WithArguments(envoy).Should(Equal("healthy"))
		Expect(strings.Split(docker("top", envoy, "-eo", "pid,comm"), "\n")[1]).To(HaveSuffix(process))
		docker("stop", envoy)
		Expect(docker("inspect", "--format", "{{.State.ExitCode}}", envoy)).To(Equal("0"))
	},
		Entry("instead of gatehouse envoy", "GATEHOUSE_DRAIN_TIME=0s", " envoy"),
		Entry("drained by gatehouse envoy", "GATEHOUSE_DRAIN_TIME=3s", " gatehouse"),
	)
})
