package e2e_test

import (
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("gatehouse standalone --demo", func() {
	It("shows its calls and an answer through Envoy, and what it says to try next works", func() {
		dir := GinkgoT().TempDir()
		args := append(standaloneArgs(dir, freePort()), "--demo", "--access-log", "off")
		g := start(nil, args...)
		Eventually(g.Stdout.String).Should(ContainSubstring("Ctrl-C ends the gateway"))

		out := g.Stdout.String()
		setUp, suggested, found := strings.Cut(out, "Try next")
		Expect(found).To(BeTrue(), out)
		var shown []string
		lines := strings.Split(setUp, "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "$ curl ") {
				shown = append(shown, line[strings.LastIndex(line, " ")+1:]+" -> "+lines[i+1])
			}
		}
		gateway := shown[len(shown)-1]
		Expect(shown).To(Equal([]string{
			g.API.URL + `/upstream -> 201 {"data":{"insert_core_db_upstream":{"affected_rows":1}}}`,
			g.API.URL + `/service -> 201 {"data":{"insert_core_db_service":{"affected_rows":1}}}`,
			g.API.URL + `/service/demo/route -> 201 {"data":{"insert_core_db_route":{"affected_rows":1}}}`,
			g.API.URL + `/service/demo/route/root/upstream/demo -> 201 {"data":{"insert_core_db_route_upstream":{"affected_rows":1}}}`,
			g.API.URL + `/proxy -> 201 {"name":"gw"}`,
			g.API.URL + `/proxy/gw/service/demo -> 201 {"data":{"insert_core_db_proxy_service":{"affected_rows":1}}}`,
			gateway,
		}), out)
		Expect(gateway).To(HaveSuffix(" -> 200 {"))
		Expect(setUp).To(MatchRegexp(`(?i)"x-forwarded-proto"`), "the answer came through Envoy")

		var try []string
		for line := range strings.SplitSeq(suggested, "\n") {
			if call, ok := strings.CutPrefix(line, "  curl "); ok {
				try = append(try, call)
			}
		}
		Expect(try).To(HaveLen(5), "a second service in four calls, and a request to it")
		for _, call := range try[:4] {
			Expect(shellCurl(call)).To(ContainSubstring(`{"affected_rows":1}`), call)
		}
		Eventually(shellCurl).WithArguments(try[4]).Should(And(ContainSubstring(`"host": "hello.local"`), ContainSubstring(`"path": "/greeting"`)))

		// The second time there is a configuration already.
		before := read(g.API, "/service")
		Expect(g.Stop(limit())).To(BeZero())
		g = start(nil, args...)
		Eventually(g.Stdout.String).Should(ContainSubstring("the demo adds nothing"))
		Eventually(shellCurl).WithArguments(try[4]).Should(ContainSubstring(`"host": "hello.local"`))
		Expect(read(g.API, "/service")).To(Equal(before))
	})
})

// shellCurl runs a curl line as a user would, pasted into a shell.
func shellCurl(line string) (string, error) {
	out, err := exec.CommandContext(limit(), "sh", "-c", "curl -sS "+line).Output()
	return string(out), err
}
