package testkit_test

import (
	"fmt"
	"net"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A free port", func() {
	It("is given to one caller only, and reserved as long as the process lives", func() {
		seen := map[int]bool{}
		for range 300 {
			port, err := testkit.FreePort()
			Expect(err).NotTo(HaveOccurred())
			Expect(seen).NotTo(HaveKey(port))
			seen[port] = true
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			Expect(err).NotTo(HaveOccurred())
			Expect(l.Close()).To(Succeed())
		}
		runtime.GC() // closes what nothing points to
		for port := range seen {
			_, err := net.ListenPacket("udp", fmt.Sprintf("127.254.0.1:%d", port))
			Expect(err).To(HaveOccurred(), "another process sees that %d is taken", port)
		}
	})
})
