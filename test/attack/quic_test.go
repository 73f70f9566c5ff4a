package attack_test

import (
	"bytes"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// strayPackets are packets of no connection, with the most that may come back: three times as much (RFC 9000 section
// 8.1), less than the packet for what looks like a lost connection (section 10.3), nothing for less than 1,200 bytes
// of a new one (section 14.1).
func strayPackets() map[string]struct {
	packet []byte
	most   int
} {
	long := func(version string, size int) []byte {
		return append([]byte("\xc0"+version+"\x08\x01\x02\x03\x04\x05\x06\x07\x08\x08\x01\x02\x03\x04\x05\x06\x07\x08\x00\x44\x00"), bytes.Repeat([]byte{7}, size)...)
	}
	return map[string]struct {
		packet []byte
		most   int
	}{
		"an unknown version":            {long("\x0a\x0a\x0a\x0a", 1200), 3 * 1200},
		"a short unknown version":       {long("\x0a\x0a\x0a\x0a", 100), 0},
		"an Initial that is no TLS":     {long("\x00\x00\x00\x01", 1200), 3 * 1200},
		"an Initial that is short":      {long("\x00\x00\x00\x01", 100), 0},
		"a packet of a lost connection": {append([]byte{0x40}, bytes.Repeat([]byte{9}, 400)...), 400},
		"one byte":                      {[]byte{0x40}, 0},
		"text":                          {bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 100), 1700},
	}
}

var _ = Describe("QUIC", func() {
	It("sends unproven addresses at most three times what came from them, and serves others meanwhile", func(ctx SpecContext) {
		t := startSecure(ctx)
		a, err := t.API.Do(ctx, http.MethodPatch, "/proxy/gw?wait=applied", "application/json", `{"http3":true}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		client, err := testkit.NewHTTP3()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(client.Stop)
		Expect(client.Connect("before", t.httpsPort, "open.test", "")).To(Succeed())
		for _, name := range some(3, []string{"open.test", "nobody.test", "bank.test", "a.wild.test", "pair/open"}) {
			sent, least, most, err := client.First(t.httpsPort, name, map[bool]int{false: 30, true: 1000}[all()])
			Expect(err).NotTo(HaveOccurred())
			Expect(sent).To(BeNumerically(">=", 1200), name)
			Expect(least).To(BeNumerically(">", 0), name)
			Expect(most).To(BeNumerically("<=", 3*sent), name)
		}
		for what, stray := range strayPackets() {
			conn, err := testkit.Bounded(net.Dial("udp", t.addr)) //nolint:noctx // of UDP
			Expect(err).NotTo(HaveOccurred())
			_, err = conn.Write(stray.packet)
			Expect(err).NotTo(HaveOccurred())
			Expect(conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))).To(Succeed())
			got, answer := 0, make([]byte, 65536)
			for {
				n, err := conn.Read(answer)
				if err != nil {
					break
				}
				got += n
			}
			Expect(got).To(BeNumerically("<=", stray.most), what)
			Expect(conn.Close()).To(Succeed())
		}
		By("and no connection for a name without a certificate, or with one that is not a host name")
		for _, name := range some(2, []string{"bank.test", "pair/open", "a.b.wild.test", "wild.test", "authorities/clients", "default/", "*.wild.test"}) {
			Expect(client.Connect(name, t.httpsPort, name, "")).NotTo(Succeed(), name)
		}
		for _, name := range []string{"OPEN.Test", "a_b.wild.test"} {
			Expect(client.Connect(name, t.httpsPort, name, "")).To(Succeed(), name)
		}
		Expect(client.Connect("after", t.httpsPort, "open.test", "")).To(Succeed())
		for _, connection := range []string{"before", "after"} {
			a, err := client.Ask(connection, "GET", "open.test", "/", nil, "")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200))
		}
		Expect(t.shown(ctx, []string{"open.test"})).To(Equal("open.test"))
	}, NodeTimeout(2*time.Minute))
})
