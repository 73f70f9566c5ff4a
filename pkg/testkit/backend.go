package testkit

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/websocket"
)

// BackendHeader names the backend in its answers.
const BackendHeader = "X-Backend"

// HealthPath is the path for health checks of a backend; see SetHealthy.
const HealthPath = "/healthz"

// BackendOptions configure a backend. The zero value is HTTP/1.1 without TLS on 127.0.0.1.
type BackendOptions struct {
	// IP is where it listens.
	IP string
	// Protocol is http, h2c, tls or h2, as in Upstream_protocol.
	Protocol string
	// TLS replaces its TLS configuration and certificate; nil means a certificate that it
	// makes. TLS must have a certificate.
	TLS *tls.Config
}

// Backend answers every request with an Echo of it. The query parameters delay=2s and
// status=503 delay the answer and set its status, each header=x-a:b adds a header to it,
// and bytes=2000 as many spaces; a websocket echoes what it receives.
type Backend struct {
	Name string
	IP   string
	Port int

	protocol string
	tls      *tls.Config
	touched  atomic.Int64
	listener *mortalListener
	server   *httptest.Server
	requests atomic.Int64
	sick     atomic.Bool
	mu       sync.Mutex
	failures int
	watch    chan<- *http.Request
}

// Echo is a request as a backend received it.
type Echo struct {
	Backend, Method, Path, Host, Proto string
	Headers                            http.Header
}

// StartBackend runs a backend on a free port until Close.
func StartBackend(name string, o BackendOptions) (*Backend, error) {
	if o.IP == "" {
		o.IP = "127.0.0.1"
	}
	b := &Backend{Name: name, IP: o.IP, protocol: o.Protocol, tls: o.TLS}
	for {
		// The system does not choose the port, see firstPort: it must be free for Restart.
		var err error
		if b.Port, err = FreePort(); err != nil {
			return nil, err
		}
		switch err = b.start(); {
		case err == nil:
			return b, nil
		case !errors.Is(err, syscall.EADDRINUSE): // otherwise another process was faster
			return nil, err
		}
	}
}

func (b *Backend) start() error {
	l, err := listenMortal(net.JoinHostPort(b.IP, strconv.Itoa(b.Port)))
	if err != nil {
		return fmt.Errorf("starting backend %q: %w", b.Name, err)
	}
	config := &http.Server{
		Handler: b, ReadHeaderTimeout: time.Minute, Protocols: &http.Protocols{},
		ErrorLog: log.New(io.Discard, "", 0), // of clients that abort a handshake
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateActive {
				b.touched.Add(1)
			}
		},
	}
	b.listener, b.server = l, &httptest.Server{Listener: l, Config: config, TLS: b.tls}
	switch b.protocol {
	case "", "http":
		config.Protocols.SetHTTP1(true)
		b.server.Start()
	case "h2c":
		config.Protocols.SetUnencryptedHTTP2(true)
		b.server.Start()
	case "tls":
		config.Protocols.SetHTTP1(true)
		b.server.StartTLS()
	case "h2":
		config.Protocols.SetHTTP2(true)
		b.server.EnableHTTP2 = true
		b.server.StartTLS()
	default:
		return fmt.Errorf("starting backend %q: unknown protocol %q", b.Name, b.protocol)
	}
	return nil
}

// Certificate returns the certificate for TLS, in PEM: it is its own authority, for
// 127.0.0.1, ::1, example.com and *.example.com. Empty without TLS.
func (b *Backend) Certificate() string {
	cert := b.server.Certificate()
	if cert == nil {
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// Cut closes all connections; new ones are accepted.
func (b *Backend) Cut() { b.server.CloseClientConnections() }

// Close closes all connections and stops the backend.
func (b *Backend) Close() {
	b.server.CloseClientConnections()
	b.server.Close()
}

// Stop accepts no new connections, lets running requests finish, and stops the backend.
func (b *Backend) Stop() { b.server.Close() }

// Requests returns the number of requests, except health checks.
func (b *Backend) Requests() int { return int(b.requests.Load()) }

// Touched counts the connections on which data arrived after the handshake, and those that
// became busy again.
func (b *Backend) Touched() int { return int(b.touched.Load()) }

// SetHealthy sets whether HealthPath answers 200, the default, or 503.
func (b *Backend) SetHealthy(ok bool) { b.sick.Store(!ok) }

// Watch sends each request to seen, unless that is full, before it is answered.
func (b *Backend) Watch(seen chan<- *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch = seen
}

func (b *Backend) tell(r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.watch <- r:
	default:
	}
}

// FailNext makes the next n requests fail with 503.
func (b *Backend) FailNext(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = n
}

func (b *Backend) failsNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return false
	}
	b.failures--
	return true
}

func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(BackendHeader, b.Name)
	if r.URL.Path == HealthPath {
		if b.sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return
	}
	b.requests.Add(1)
	b.tell(r)
	if r.Header.Get("Upgrade") == "websocket" {
		websocket.Server{Handler: func(ws *websocket.Conn) { _, _ = io.Copy(ws, ws) }}.ServeHTTP(w, r)
		return
	}
	if d, err := time.ParseDuration(r.URL.Query().Get("delay")); err == nil {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return
		}
	}
	status := http.StatusOK
	if s, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
		status = s
	}
	if b.failsNow() {
		status = http.StatusServiceUnavailable
	}
	for _, line := range r.URL.Query()["header"] {
		name, value, _ := strings.Cut(line, ":")
		w.Header().Add(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if n, err := strconv.Atoi(r.URL.Query().Get("bytes")); err == nil {
		_, _ = io.WriteString(w, strings.Repeat(" ", n))
	}
	_ = json.NewEncoder(w).Encode(Echo{b.Name, r.Method, r.RequestURI, r.Host, r.Proto, r.Header})
}
