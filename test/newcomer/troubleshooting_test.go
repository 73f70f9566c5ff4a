package newcomer_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// refused is a row of docs/troubleshooting.md: a URL with options of curl and explain, and what shows the reason.
type refused struct{ status, url, options, says, details string }

func refusedRows() (list []refused) {
	GinkgoHelper()
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	Expect(err).NotTo(HaveOccurred())
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(http://[^ `]+) ?([^`]*)` \\| `([^`]+)` \\| (?:`([^`]+)` )?\\|$")
	for _, section := range strings.Split(string(text), "\n## ") {
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			list = append(list, refused{section[:3], m[1], m[2], m[3], m[4]})
		}
	}
	return list
}

// troubled runs a gateway with the document of the page, and backends as it says.
func troubled() gateway {
	GinkgoHelper()
	blue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
		case "/cart/nothing":
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	DeferCleanup(blue.Close)
	ssh, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ssh.Close)
	go func() {
		for {
			c, err := ssh.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-x\r\n"))
			_ = c.Close()
		}
	}()
	port := func(of net.Addr) string { return fmt.Sprint(": ", of.(*net.TCPAddr).Port, "}") }
	nothing := func() string {
		p, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		return fmt.Sprint(": ", p)
	}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	Expect(err).NotTo(HaveOccurred())
	document := regexp.MustCompile("(?s)\n```yaml\n(.*?)```").FindStringSubmatch(string(page))
	Expect(document).NotTo(BeNil())
	g := standalone("--access-log", "json")
	write(g.dir, "gateway.yaml", strings.NewReplacer(": 9000}", port(blue.Listener.Addr()), ": 9001}", nothing()+"}",
		": 9002", nothing(), ": 9003}", port(ssh.Addr())).Replace(document[1]))
	binary, err := filepath.Abs("../../bin")
	Expect(err).NotTo(HaveOccurred())
	GinkgoT().Setenv("PATH", binary+":"+os.Getenv("PATH"))
	GinkgoT().Setenv("GATEHOUSE_SERVER", "http://"+g.api)
	out, err := g.run("gatehouse apply -f gateway.yaml")
	Expect(err).NotTo(HaveOccurred(), out)
	return g
}

// send sends the request of a row with curl, and returns the status, or what curl says.
func (g gateway) send(r refused) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(r.url, "http://"), "/")
	options := regexp.MustCompile(`-H 'Content-Length: 20'`).ReplaceAllString(r.options, "-d 12345678901234567890")
	out, _ := g.run(fmt.Sprintf("curl -sS -o answer -w '%%{http_code}' --path-as-is -H 'Host: %s' %s http://127.0.0.1:8080/%s", host, options, path))
	return out
}

var _ = Describe("docs/troubleshooting.md", func() {
	It("names the cause of each status, with explain and the access log", func() {
		rows := refusedRows()
		Expect(len(rows)).To(BeNumerically(">", 20))
		g := troubled()
		first := refused{url: "http://shop.test/limit"} // which uses up the limit
		Eventually(g.send).WithArguments(first).Should(Equal("200"))
		Eventually(g.send).WithArguments(refused{url: "http://shop.test/sick"}).Should(Equal("503"))
		for _, r := range rows {
			Expect(g.send(r)).To(Equal(r.status), "%+v", r)
		}
		By("with explain")
		for _, r := range rows {
			Eventually(g.run).WithArguments("gatehouse explain gw '"+r.url+"' "+r.options+" -o table").
				Should(ContainSubstring(r.says), "%+v", r)
		}
		By("with the access log")
		details := map[string]bool{}
		Eventually(func() (missing []string) {
			for line := range strings.Lines(g.Stdout.String()) {
				var l map[string]any
				if json.Unmarshal([]byte(line), &l) == nil && l["response_code"] != nil {
					details[fmt.Sprint(l["authority"], l["path"], " ", l["response_code"], " ", l["response_code_details"])] = true
				}
			}
			for _, r := range rows {
				want := strings.TrimPrefix(r.url, "http://") + " " + r.status + " "
				found := false
				for line := range details {
					found = found || strings.HasPrefix(line, want+r.details)
				}
				if found != (r.details != "") {
					missing = append(missing, want+r.details)
				}
			}
			return missing
		}).Should(BeEmpty(), func() string { return fmt.Sprint(details) })
	})

	It("has 431 for large headers, and 421 for another host than that of the connection", func() {
		g := troubled()
		write(g.dir, "headers", "x-a: "+strings.Repeat("a", 70_000))
		Eventually(g.run).WithArguments("curl -sS -o answer -w '%{http_code}' -H Host:shop.test -H @headers http://127.0.0.1:8080/cart").Should(Equal("431"))
		for _, line := range blocks("HTTPS")[0][:2] { // which make a secret shop
			out, err := g.run(line)
			Expect(err).NotTo(HaveOccurred(), out)
		}
		out, err := g.run("curl -sS -X POST 'http://127.0.0.1:1323/service/shop/secret/shop?wait=applied'")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(g.run).WithArguments("curl -sS -o answer -w '%{http_code}' --cacert shop.crt --resolve shop.test:8443:127.0.0.1 -H Host:tls.test https://shop.test:8443/").Should(Equal("421"))
		Expect(g.run("gatehouse explain gw https://shop.test/ -H 'Host: tls.test' -o table")).To(ContainSubstring("misdirected"))
	})
})
