package policies_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// policies returns the entries of all types. They are made once, because some have random keys.
var policies = sync.OnceValue(func() []policy {
	return []policy{
		accessLog(),
		affinity(),
		anyOf(),
		apiKey(),
		basicAuth(),
		bodyLimit(),
		canary(),
		compress(),
		consumer(),
		cors(),
		csrf(),
		directResponse(),
		errorPage(),
		extAuthz(),
		extProc(),
		fault(),
		grpcJSON(),
		grpcWeb(),
		headers(),
		hostRewrite(),
		ipAccess(),
		jwt(),
		lua(),
		maintenance(),
		mirror(),
		rbac(),
		redirect(),
		requestID(),
		traced(),
	}
})

// policy is what the harness tries for one type of filter.
type policy struct {
	// kind is the Filter_type, filter the name of the filter in Envoy.
	kind, filter string
	// denies is the status of a request if Envoy does not understand the message of a host or
	// route; 0 means that the type protects nothing.
	denies int
	// redacted is the value behind <redacted> in the API's view of the Envoys.
	redacted string
	// given creates the objects that the configurations name.
	given func(*world)
	// silent says that no answer shows whether the filter is there.
	silent bool
	// flags are flags that the program needs.
	flags []string
	// config and changed are two configurations.
	config, changed string
	// unpredictable says that explain does not know what the filter does, and reports that.
	unpredictable bool
	// says returns the part of an answer that the type may change; nil stands for its status.
	says func(answer) string
	// twins says that each route with a message has another route in front, with the same message.
	twins bool
	// requests are tried each time.
	requests []request
	// refusals are configurations that are refused with 400.
	refusals []refusal
}

// request is sent to the world of newWorld; its answers are compared with the results of says.
type request struct {
	what string
	// method is GET, host shop.test and path /shop if they are empty. from is the address of
	// the client; empty means 127.0.0.1.
	method, host, path, from string
	// header has lines of the form "Name: value".
	header []string
	// body is sent with its Content-Length.
	body string
	// asked says that another server decides, to which explain sends no request.
	asked bool
	// off is the result without the filter, on with config on the service, changed with the
	// other configuration there, and both with config on the service and the other one on the
	// route.
	off, on, changed, both string
	// exempt is the result with config on the service if the route of shop is exempt; empty stands for off on this route,
	// and for on elsewhere. exemptChanged is that with the other configuration on the route; empty stands for changed.
	exempt, exemptChanged string
	// reason is what metrics call the refusal with config; empty stands for the kind of the filter.
	reason string
}

// onRoutes reports whether the type attaches to routes, too, and not only to services.
func (p policy) onRoutes() bool { return (&model.Filter{Type: p.kind}).FitsOn(model.KindRoute) }

// onRoute reports whether the request matches the route that filters are attached to.
func (r request) onRoute() bool {
	return r.host == "" && (r.path == "" || strings.HasPrefix(r.path, "/shop"))
}

// refusal is a configuration with its error.
type refusal struct{ config, field, message string }

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
	// seen are the headers that the backend received, and host the Host; nil if no backend
	// answered.
	seen http.Header
	host string
}

func answerOf(status int, header http.Header, body []byte) answer {
	var echo testkit.Echo
	if header.Get(testkit.BackendHeader) == "" || json.Unmarshal(body, &echo) != nil {
		return answer{status: status, header: header, body: string(body)}
	}
	return answer{status, header, string(body), echo.Headers, echo.Host}
}

// tell returns what the entry says of an answer.
func (p policy) tell(a answer) string {
	if p.says == nil {
		return strconv.Itoa(a.status)
	}
	return p.says(a)
}

// each compares the answers to all requests, and those of explain with them.
func (w *world) each(p policy, want func(request) string) {
	GinkgoHelper()
	for _, r := range p.requests {
		a := w.send(r)
		Expect(p.tell(a)).To(Equal(want(r)), r.what)
		if r.asked {
			continue
		}
		status, body, unknown := w.explained(r)
		Expect(len(unknown) > 0 || want(r) == r.off || !p.unpredictable).To(BeTrue(), "explain predicts: "+r.what)
		if p.unpredictable && len(unknown) > 0 {
			Expect(unknown).To(ConsistOf(p.filter), "explain of: "+r.what)
			continue
		}
		Expect(status).To(Equal(a.status), "explain of: "+r.what)
		if body != "" {
			Expect(body).To(Equal(a.body), "explain of: "+r.what)
		}
	}
}
