package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
)

func TestGatehouse(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "gatehouse")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() {
		Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	// The settings of the person who runs the specs do not affect them.
	GinkgoT().Setenv("XDG_CONFIG_HOME", GinkgoT().TempDir())
	for _, v := range []string{"GATEHOUSE_SERVER", "GATEHOUSE_TOKEN_FILE", "GATEHOUSE_CA_FILE", "GATEHOUSE_CONTEXT"} {
		GinkgoT().Setenv(v, "")
	}
})

// result is what a run of the program left.
type result struct {
	code           int
	stdout, stderr string
}

// run1 runs the program in this process.
func run1(stdin string, args ...string) result {
	return runIn(context.Background(), stdin, args...)
}

func runIn(ctx context.Context, stdin string, args ...string) result {
	var out, errOut bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errOut)
	code := exitCode(ctx, root.ExecuteContext(ctx), &errOut)
	return result{code, out.String(), errOut.String()}
}

// good runs the program, which has to succeed without words of warning.
func good(args ...string) string {
	GinkgoHelper()
	r := run1("", args...)
	Expect(r.code).To(BeZero(), r.stderr)
	Expect(r.stderr).To(BeEmpty())
	return r.stdout
}

// fake is a server with literal answers.
type fake struct {
	// answers are by METHOD and path with query.
	answers map[string]reply
	// calls are those that came.
	calls []string
	// bodies are the bodies of the calls.
	bodies []string
	// headers are the headers of the last call.
	headers http.Header
}

type reply struct {
	status int
	body   string
	header map[string]string
}

// serve runs f and makes it the server that commands call.
func (f *fake) serve() {
	server := httptest.NewServer(f)
	DeferCleanup(server.Close)
	GinkgoT().Setenv("GATEHOUSE_SERVER", server.URL)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer GinkgoRecover()
	call := r.Method + " " + r.URL.String()
	body, err := io.ReadAll(r.Body)
	Expect(err).NotTo(HaveOccurred())
	f.calls, f.bodies, f.headers = append(f.calls, call), append(f.bodies, string(body)), r.Header
	a, ok := f.answers[call]
	if !ok {
		a = reply{status: 404, body: `{"title":"No such path","status":404,"detail":"no such path","code":"not_found"}`}
	}
	w.Header().Set("Content-Type", "application/json")
	if a.status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// serving runs a fake with one answer.
func serving(call string, a reply) *fake {
	f := &fake{answers: map[string]reply{call: a}}
	f.serve()
	return f
}
