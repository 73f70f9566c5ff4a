package testkit

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// TrafficOptions describe the traffic. Addr is required.
type TrafficOptions struct {
	// Addr is HOST:PORT of the gateway, Host the Host header (default Addr),
	// Path the target (default /), Cookie the header of that name (default none).
	Addr, Host, Path, Cookie string
	// Rate is the number of requests per second, over Connections keep-alive connections. 0 means 1000
	// and 20.
	Rate, Connections int
	// TLS uses HTTPS: each connection is opened for the host of its first request, and another one for
	// a request to another host. ServerName is not used.
	TLS *tls.Config
	// Fresh opens a connection for each request.
	Fresh bool
	// Method, Body and Lines are as in Target.
	Method, Body string
	Lines        []string
	// Next returns the target of each request, instead of Host, Path, Cookie, Method, Body and Lines.
	// Next and Judge must be safe for concurrent use.
	Next func() Target
	// Judge returns an error for a wrong answer, instead of "status 200 is right". It may keep the
	// body.
	Judge func(Exchange) error
}

// Target describes a request. Cookie is the header, if it is not empty.
type Target struct {
	Host, Path, Cookie string
	// Method defaults to GET. A Body is sent with its Content-Length, if it is not empty.
	Method, Body string
	// Lines are additional headers, of the form "Name: value".
	Lines []string
}

// Exchange is a request with its complete answer.
type Exchange struct {
	Target
	Sent, Done time.Time
	Status     int
	// Backend is the value of BackendHeader, Location the header of that name.
	Backend, Location string
	Body              []byte
	Header            http.Header
}

// Traffic sends requests at a fixed rate until Stop. Unlike an http.Client it does not retry: it counts
// what a client would see.
type Traffic struct {
	opts   TrafficOptions
	began  time.Time
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex
	report  Report
	running map[*keptConn]time.Time // requests, by when they were sent
}

// Report sums up the requests.
type Report struct {
	// Requests counts those that ended, with success or not.
	Requests int
	// Backends counts the right answers with status 200 by BackendHeader.
	Backends map[string]int
	// Failures are those without an answer, or with a wrong one.
	Failures []Failure
	// Slowest is the longest time to an answer, and Took the total.
	Slowest, Took time.Duration
}

// Failure is a request without an answer, or with a wrong one.
type Failure struct {
	// At is the time since the start of the traffic.
	At     time.Duration
	Reason string
}

func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests in %s (%.0f a second), %d failed, slowest %s, by backend %v",
		r.Requests, r.Took.Round(time.Millisecond), float64(r.Requests)/r.Took.Seconds(), len(r.Failures),
		r.Slowest.Round(time.Millisecond), r.Backends)
	for _, f := range r.Failures[:min(len(r.Failures), 20)] {
		fmt.Fprintf(&b, "\n  at %s: %s", f.At.Round(time.Millisecond), f.Reason)
	}
	return b.String()
}

// StartTraffic starts the traffic.
func StartTraffic(o TrafficOptions) *Traffic {
	if o.Host == "" {
		o.Host = o.Addr
	}
	if o.Path == "" {
		o.Path = "/"
	}
	if o.Next == nil {
		fixed := Target{o.Host, o.Path, o.Cookie, o.Method, o.Body, o.Lines}
		o.Next = func() Target { return fixed }
	}
	if o.Judge == nil {
		o.Judge = needOK
	}
	if o.Rate == 0 {
		o.Rate = 1000
	}
	if o.Connections == 0 {
		o.Connections = 20
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Traffic{
		opts: o, began: time.Now(), cancel: cancel, report: Report{Backends: map[string]int{}},
		running: map[*keptConn]time.Time{},
	}
	interval := time.Duration(o.Connections) * time.Second / time.Duration(o.Rate)
	for i := range o.Connections {
		first := t.began.Add(interval * time.Duration(i) / time.Duration(o.Connections))
		t.group.Go(func() { t.run(ctx, first, interval) })
	}
	return t
}

func needOK(e Exchange) error {
	if e.Status != http.StatusOK {
		return fmt.Errorf("status %d: %s", e.Status, e.Body)
	}
	return nil
}

// Stop lets running requests finish and returns the report.
func (t *Traffic) Stop() Report {
	t.cancel()
	t.group.Wait()
	return t.Report()
}

// Report returns the report so far.
func (t *Traffic) Report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	r.Took = time.Since(t.began)
	r.Failures = append([]Failure(nil), r.Failures...)
	r.Backends = map[string]int{}
	for name, n := range t.report.Backends {
		r.Backends[name] = n
	}
	return r
}

// run sends over one connection at a time, at fixed times. A late request is sent immediately, or not
// at all if it is more than a second late.
func (t *Traffic) run(ctx context.Context, next time.Time, interval time.Duration) {
	c := &keptConn{opts: t.opts}
	defer c.close()
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		e := Exchange{Target: t.opts.Next(), Sent: t.begin(c)}
		e.Method = cmp.Or(e.Method, http.MethodGet)
		err := c.request(&e)
		if e.Done = time.Now(); err == nil {
			err = t.opts.Judge(e)
		}
		t.note(c, e, err)
		next = next.Add(interval)
		if late := time.Since(next); late > time.Second {
			next = next.Add(late)
		}
		timer.Reset(time.Until(next))
	}
}

func (t *Traffic) begin(c *keptConn) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[c] = time.Now()
	return t.running[c]
}

// Oldest returns when the oldest running request was sent; now if there is none.
func (t *Traffic) Oldest() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := time.Now()
	for _, sent := range t.running {
		if sent.Before(oldest) {
			oldest = sent
		}
	}
	return oldest
}

func (t *Traffic) note(c *keptConn, e Exchange, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, c)
	t.report.Requests++
	t.report.Slowest = max(t.report.Slowest, e.Done.Sub(e.Sent))
	if err != nil {
		t.report.Failures = append(t.report.Failures, Failure{e.Sent.Sub(t.began), err.Error()})
		return
	}
	if e.Status == http.StatusOK {
		t.report.Backends[e.Backend]++
	}
}

// keptConn is a connection that is reopened after an error, or if the gateway asked to close it.
type keptConn struct {
	opts TrafficOptions
	conn net.Conn
	read *bufio.Reader
	host string // for which conn was opened
}

func (c *keptConn) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// dial makes a connection for a host.
func (c *keptConn) dial(host string, limit time.Duration) (err error) {
	dialer := &net.Dialer{Timeout: limit}
	if c.opts.TLS == nil {
		c.conn, err = dialer.Dial("tcp", c.opts.Addr)
	} else {
		config := c.opts.TLS.Clone()
		config.ServerName, _, _ = strings.Cut(host, ":")
		var conn *tls.Conn // an interface with a nil pointer is not nil
		if conn, err = tls.DialWithDialer(dialer, "tcp", c.opts.Addr, config); err == nil {
			c.conn = conn
		}
	}
	c.host, c.read = host, bufio.NewReader(c.conn)
	return err
}

// request sends a request and reads the answer.
func (c *keptConn) request(e *Exchange) (err error) {
	const limit = 15 * time.Second
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s%s: %w", e.Method, e.Host, e.Path, err)
			c.close()
		}
	}()
	if c.conn != nil && (c.opts.Fresh || c.opts.TLS != nil && c.host != e.Host) {
		c.close()
	}
	if c.conn == nil {
		if err := c.dial(e.Host, limit); err != nil {
			return err
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	more := ""
	if e.Cookie != "" {
		more = "Cookie: " + e.Cookie + "\r\n"
	}
	for _, line := range e.Lines {
		more += line + "\r\n"
	}
	if e.Target.Body != "" {
		more += fmt.Sprintf("Content-Length: %d\r\n", len(e.Target.Body))
	}
	if _, err := fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", e.Method, e.Path, e.Host, more,
		e.Target.Body); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	if e.Body, err = io.ReadAll(resp.Body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if resp.Close {
		c.close()
	}
	e.Status, e.Header = resp.StatusCode, resp.Header
	e.Backend, e.Location = resp.Header.Get(BackendHeader), resp.Header.Get("Location")
	return nil
}
