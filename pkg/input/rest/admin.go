package rest

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// adminTime bounds an answer of Envoy's; the server bounds its reader.
	adminTime = 30 * time.Second
	// maxAdmin is how many Envoy is asked for at a time: its main thread, which
	// reads the configuration too, writes each.
	maxAdmin = 8
)

// adminReads are the paths of Envoy's admin endpoint that only read, and show
// nothing confidential.
func adminReads() []string {
	return []string{
		"/certs", "/clusters", "/listeners", "/memory", "/ready", "/server_info", "/stats", "/stats/prometheus",
	}
}

// AdminOptions are what the admin endpoint needs beside those options of the API
// that say who may call it.
type AdminOptions struct {
	// Ask makes a request of Envoy's own admin endpoint.
	Ask func(ctx context.Context, method, target string) (*http.Response, error)
	// Socket is where that is, for those who need more.
	Socket string
}

type admin struct {
	*server
	opts AdminOptions
	// busy has an element for each question that Envoy has not answered.
	busy chan struct{}
}

// NewAdmin returns the handler of the admin port: what the specification names
// of Envoy's admin endpoint, and what only reads, for those who may call the
// API.
func NewAdmin(o Options, opts AdminOptions) http.Handler {
	s := newServer(o)
	a := &admin{server: s, opts: opts, busy: make(chan struct{}, maxAdmin)}
	s.router.Use(s.logRequest, s.recover, s.authenticate)
	s.router.NoRoute(a.refusePath)
	s.router.NoMethod(s.noMethod)
	for _, path := range adminReads() {
		s.get(path, a.forward)
	}
	s.post("/logging", a.forward)
	return s.router
}

// forward returns Envoy's answer. It passes on the method, the path and
// the query of the request, nothing else.
func (a *admin) forward(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), adminTime)
	defer cancel()
	select {
	case a.busy <- struct{}{}:
		defer func() { <-a.busy }()
	default:
		return newProblem(http.StatusServiceUnavailable, "unavailable",
			"Envoy's admin endpoint has too many requests at a time; try again")
	}
	method, target := c.Request.Method, c.FullPath()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if q := c.Request.URL.RawQuery; q != "" {
		target += "?" + q
	}
	resp, err := a.opts.Ask(ctx, method, target)
	if err != nil {
		a.log.DebugContext(ctx, "admin request not answered", "err", err)
		return newProblem(http.StatusServiceUnavailable, "unavailable",
			"Envoy does not answer: it is starting or stopping; see its log")
	}
	defer resp.Body.Close()
	h := c.Writer.Header()
	h.Set("Content-Type", resp.Header.Get("Content-Type"))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	c.Status(resp.StatusCode)
	c.Writer.WriteHeaderNow()
	if c.Request.Method != http.MethodHead {
		if _, err := io.Copy(c.Writer, resp.Body); err != nil {
			a.log.DebugContext(ctx, "admin answer cut off", "path", target, "err", err)
			panic(http.ErrAbortHandler) // the client must not take it for whole
		}
	}
	return nil
}

// refusePath answers 404 and names the socket of Envoy's own admin endpoint.
func (a *admin) refusePath(c *gin.Context) {
	a.writeProblem(c, newProblem(http.StatusNotFound, "not_found", "this port does not have "+shorten(requestPath(c))+
		"; the user that runs the gateway has all of Envoy's admin endpoint at a Unix socket: curl --unix-socket "+
		a.opts.Socket+" http://envoy/help"))
}
