package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// connectionLines returns the lines of the access log for connections of a service.
func connectionLines(g *testkit.Gatehouse, service string) (lines []map[string]any) {
	for text := range strings.SplitSeq(g.Stdout.String(), "\n") {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["service"] == service && line["bytes_sent"] != nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// nameServer answers every question for an address with 192.0.2.53, until the end of the spec.
func nameServer() talker {
	GinkgoHelper()
	return answerDatagrams("names", func(question []byte) []byte {
		if len(question) < 12 {
			return nil
		}
		answer := append([]byte{}, question[:12]...)
		answer[2], answer[3] = 0x81, 0x80 // an answer, without an error
		copy(answer[6:], []byte{0, 1, 0, 0, 0, 0})
		end := 12
		for question[end] != 0 {
			end += 1 + int(question[end])
		}
		answer = append(answer, question[12:end+5]...)
		return append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 53)
	})
}

var _ = Describe("A program that speaks no HTTP", func() {
	It("reaches a database over TCP, and a name server over UDP, and the access log has its connections", func() {
		g, gw := standalone()
		post(gw.api, "/proxy", "Name=gw")
		server, err := postgres.Start(limit(), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		at, err := url.Parse(server.URL("postgres"))
		Expect(err).NotTo(HaveOccurred())
		post(gw.api, "/upstream", "Upstream_name=db", "Upstream_ip="+at.Hostname(), "Upstream_port="+at.Port(), "Upstream_hc_type=tcp")
		names := nameServer()
		addTalker(gw.api, names)
		port, datagrams := freePort(), freeDatagramPort()
		addL4(gw.api, "db", "tcp", port, "*", "db")
		addL4(gw.api, "names", "udp", datagrams, "*", "names")
		applied(gw.api, http.MethodPatch, "/service/names/route/root", `Route_config={"timeouts":{"idle":"1s"}}`)

		at.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		psql, err := postgres.Program("psql")
		Expect(err).NotTo(HaveOccurred())
		sum, err := exec.CommandContext(limit(), psql, at.String(), "--no-psqlrc", "--tuples-only", "--no-align", "--command",
			"SELECT sum(n) FROM generate_series(1, 100000) AS n WHERE n < 10").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(sum))
		Expect(string(sum)).To(Equal("45\n"))

		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(datagrams)))
		}}
		addrs, err := resolver.LookupNetIP(limit(), "ip4", "db.example.")
		Expect(err).NotTo(HaveOccurred())
		Expect(fmt.Sprint(addrs)).To(Equal("[192.0.2.53]"))

		Eventually(func() int { return len(connectionLines(g, "db")) }).Should(Equal(1))
		line := connectionLines(g, "db")[0]
		Expect(line).To(And(HaveKeyWithValue("protocol", "tcp"), HaveKeyWithValue("upstream_cluster", "db"), HaveKeyWithValue("response_flags", "-")))
		Expect(line["bytes_received"]).To(BeNumerically(">", 100))
		Expect(line["bytes_sent"]).To(BeNumerically(">", 100))
		Eventually(func() int { return len(connectionLines(g, "names")) }).Should(BeNumerically(">", 0))
		session := connectionLines(g, "names")[0]
		Expect(session).To(HaveKeyWithValue("protocol", "udp"))
		Expect(session["bytes_received"]).To(BeNumerically(">", 20))
		Expect(session["bytes_sent"]).To(BeNumerically(">", 30))
	})
})

var _ = Describe("The commands of docs/tcp.md", func() {
	It("do what the page says", func() {
		s, _ := secure()
		remove(s.api, "/proxy/gw")
		text, err := os.ReadFile("../../docs/tcp.md")
		Expect(err).NotTo(HaveOccurred())
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"mail.example.com"}})
		Expect(err).NotTo(HaveOccurred())
		cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
		Expect(err).NotTo(HaveOccurred())
		db, mail := talk("db", nil), talk("mail", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
		names, tcp, udp := echoDatagrams("dns "), freePort(), freeDatagramPort()
		change := strings.NewReplacer(
			"http://127.0.0.1:1323", s.api.URL, "15432", strconv.Itoa(tcp), "15353", strconv.Itoa(udp),
			"10.0.0.5", "127.0.0.1", "10.0.0.6", "127.0.0.1", "10.0.0.7", "127.0.0.1",
			"Upstream_port=5432", "Upstream_port="+strconv.Itoa(db.port), "Upstream_port=993", "Upstream_port="+strconv.Itoa(mail.port),
			"Upstream_port=53", "Upstream_port="+strconv.Itoa(names.port),
		)
		script := "set -e\nA=" + s.api.URL + "\ncurl() { command curl -sS --fail-with-body \"$@\"; }\n"
		blocks := regexp.MustCompile("(?s)\n```\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1)
		Expect(blocks).To(HaveLen(3))
		for _, block := range blocks {
			script += change.Replace(block[1]) + "\n"
		}
		out, err := exec.CommandContext(limit(), "sh", "-c", script).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
		Eventually(func() string { return who(tcp, nil) }).Should(Equal("db"))
		client := &tls.Config{ServerName: "mail.example.com", RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
		Eventually(func() string { return who(s.httpsPort, client) }).Should(Equal("mail"))
		Eventually(func() string { return datagrams(udp).ask("a") }).Should(Equal("dns a"))
	})
})
