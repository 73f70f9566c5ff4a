package contract_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestContract(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Contract")
}

// adminToken keeps the API usable: without it, a call that creates the first token
// would lock out all later calls.
const adminToken = "gh_contract-token-of-the-tests-0123456789abcdef"

// start runs the program with a few objects, which the examples of the document name.
func start(ctx context.Context) *testkit.Gatehouse {
	GinkgoHelper()
	g, err := testkit.StartGatehouse(ctx, []string{"GATEHOUSE_API_ADMIN_TOKEN=" + adminToken},
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(g.Kill)
	Expect(g.WaitReady(ctx)).To(Succeed())
	for _, call := range [][2]string{
		{"/upstream", "Upstream_name=blue&Upstream_ip=192.0.2.1&Upstream_port=80"},
		{"/service", "Service_Name=shop&fqdn=shop.example.com"},
		{"/service/shop/route", "Route_Name=root&Route_prefix=/"},
		{"/proxy", "Name=gw"},
		{"/filter", "Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config=" + url.QueryEscape(`{"descriptors":[{"remote_address":"client"}]}`)},
		{"/globalconfig", "globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config=" + url.QueryEscape(`{"domain":"shop"}`)},
		{"/secret", "Secret_name=shop-tls"},
		{"/token", "Token_name=ci&Token_role=viewer"},
		{"/proxy/gw/token", "Token_name=ci"},
		{"/ratelimit/token", "Token_name=ci"},
		{"/service/shop/route/root/upstream/blue", ""},
		{"/service/shop/route/root/filter/limit", ""},
		{"/service/shop/filter/limit", ""},
		{"/service/shop/secret/shop-tls", ""},
		{"/proxy/gw/service/shop", ""},
		{"/proxy/gw/globalconfig/rates", ""},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.API.URL+call[0], strings.NewReader(call[1]))
		Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Authorization", "Bearer "+adminToken)
		a, err := testkit.Send(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(201), "%s: %s", call[0], a.Body)
	}
	return g
}

// document writes the program's OpenAPI document, without parameters that would make a
// call wait for Envoys, of which there are none.
func document(ctx context.Context, g *testkit.Gatehouse) (path string) {
	GinkgoHelper()
	got, err := g.API.Get(ctx, "/openapi.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(got.Status).To(Equal(200))
	waits := regexp.MustCompile(`(?m)^ *- {\$ref: "#/components/parameters/(wait|timeout)"}\n|, {\$ref: "#/components/parameters/(wait|timeout)"}`)
	text := waits.ReplaceAllString(got.Body, "")
	Expect(text).NotTo(ContainSubstring("components/parameters/wait"))
	path = filepath.Join(GinkgoT().TempDir(), "openapi.yaml")
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

var _ = Describe("The running program", func() {
	It("answers as its OpenAPI document says, whatever it is sent", func(ctx SpecContext) {
		schemathesis, err := testkit.Binary("schemathesis")
		Expect(err).NotTo(HaveOccurred(), "`make schemathesis` fetches it")
		g := start(ctx)

		config, err := filepath.Abs("testdata/schemathesis.toml")
		Expect(err).NotTo(HaveOccurred())
		args := []string{
			"--config-file", config, "run", document(ctx, g), "--url", g.API.URL,
			"--exclude-path", "/events", // the answer does not end
			"--header", "Authorization: Bearer " + adminToken,
			"--checks", "not_a_server_error,status_code_conformance,content_type_conformance," +
				"response_headers_conformance,response_schema_conformance,unsupported_method",
			"--phases", "examples,coverage,fuzzing", "--max-examples", "2", "--generation-deterministic",
			"--continue-on-failure", "--no-shrink", "--warnings", "off", "--no-color",
		}
		cmd := exec.CommandContext(ctx, schemathesis, args...)
		cmd.Dir = GinkgoT().TempDir() // where it stores what it has learned: nothing, at the start
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		GinkgoWriter.Printf("%s", out)

		// It made calls of every operation.
		cases := regexp.MustCompile(`(\d+) generated, (\d+) passed`).FindStringSubmatch(string(out))
		Expect(cases).To(HaveLen(3), "%s", out)
		Expect(strconv.Atoi(cases[1])).To(BeNumerically(">", 5000))
		operations := regexp.MustCompile(`Selected: (\d+)/(\d+)\s+Tested: (\d+)`).FindStringSubmatch(string(out))
		Expect(operations).To(HaveLen(4), "%s", out)
		Expect(operations[3]).To(Equal(operations[1]))
		selected, err := strconv.Atoi(operations[1])
		Expect(err).NotTo(HaveOccurred())
		Expect(strconv.Atoi(operations[2])).To(Equal(selected + 1)) // GET /events

		// The program still runs, without internal errors.
		health, err := g.API.Get(ctx, "/health")
		Expect(err).NotTo(HaveOccurred())
		Expect(health.Status).To(Equal(200))
		for _, line := range g.Stderr.Lines() {
			Expect(line).NotTo(Or(ContainSubstring(`"level":"ERROR"`), ContainSubstring("goroutine ")))
		}
	}, SpecTimeout(20*time.Minute))
})
