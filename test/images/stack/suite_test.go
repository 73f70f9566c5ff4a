//go:build images

package stack_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestStack(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "local stack")
}

// root is the top of the checkout.
const root = "../../.."

// stack is a stack that `make up` runs, with its own ports and name.
type stack struct {
	name, dir, settings string
	api, edge, inner    string // HOST:PORT
	ports               map[string]string
}

// newStack returns a stack that does not run yet.
func newStack() *stack {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	s := &stack{
		name: "gh" + strconv.Itoa(os.Getpid()), dir: filepath.Join(dir, "stack"),
		settings: filepath.Join(dir, "env"), ports: map[string]string{},
	}
	for _, name := range []string{"API", "EDGE", "EDGE_TLS", "INNER", "LOGIN", "PROMETHEUS"} {
		port, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		s.ports[name] = strconv.Itoa(port)
	}
	s.api, s.edge, s.inner = "127.0.0.1:"+s.ports["API"], "127.0.0.1:"+s.ports["EDGE"], "127.0.0.1:"+s.ports["INNER"]
	return s
}

// make runs a target for this stack, and returns its standard output.
func (s *stack) make(ctx context.Context, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "IMAGES=local"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "STACK_NAME="+s.name, "STACK_DIR="+s.dir, "STACK_ENV="+s.settings)
	for name, port := range s.ports {
		cmd.Env = append(cmd.Env, "STACK_"+name+"_PORT="+port)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, GinkgoWriter
	Expect(cmd.Run()).To(Succeed(), "make %v", args)
	return out.String()
}

// docker runs the client, and returns its output.
func docker(ctx context.Context, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "docker", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	Expect(cmd.Run()).To(Succeed(), "docker %v: %s", args, &errs)
	return strings.TrimSpace(out.String())
}

// containers lists the running ones of the stack, by service.
func (s *stack) containers(ctx context.Context) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for line := range strings.Lines(docker(ctx, "ps", "--no-trunc", "--filter", "label=com.docker.compose.project="+s.name,
		"--format", `{{.Label "com.docker.compose.service"}} {{.ID}}`)) {
		service, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[service] = id
	}
	return found
}

// answer is the answer to a GET; status 0 means that there was none.
type answer struct {
	status int
	body   string
}

// client opens a connection for each request, so that none of an earlier container is used.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get sends a GET.
func get(ctx context.Context, url string) answer {
	return send(ctx, http.MethodGet, url, "", "")
}

// call sends a request to the API, with the token.
func (s *stack) call(ctx context.Context, method, path, contentType, body string) answer {
	return send(ctx, method, "http://"+s.api+path, contentType, body, "Authorization", "Bearer "+s.token())
}

func (s *stack) token() string {
	content, _ := os.ReadFile(filepath.Join(s.dir, "secrets/api-token"))
	return strings.TrimSpace(string(content))
}

func send(ctx context.Context, method, url, contentType, body string, header ...string) answer {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{body: err.Error()}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	got, err := client.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	content, err := io.ReadAll(got.Body)
	_ = got.Body.Close()
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{status: got.StatusCode, body: string(content)}
}

// bound returns a context for one step of a spec.
func bound(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	time.AfterFunc(limit, cancel)
	return ctx
}

// form returns the body of a POST.
func form(format string, args ...any) string { return fmt.Sprintf(format, args...) }
