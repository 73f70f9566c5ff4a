package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// pollEvery is the time between two requests to the admin endpoint.
const pollEvery = 50 * time.Millisecond

// maxAnswer bounds what is read of an admin answer, in bytes.
const maxAnswer = 8 << 20

// askTime bounds a call.
const askTime = time.Second

// Admin is the admin endpoint of an Envoy, which may start later.
type Admin struct{ transport *http.Transport }

// NewAdmin returns the admin endpoint at a socket.
func NewAdmin(socket string) *Admin {
	return &Admin{&http.Transport{
		DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
}

// Ask sends a request to the endpoint. The caller reads and closes the answer.
func (a *Admin) Ask(ctx context.Context, method, target string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://envoy"+target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking Envoy for %s: %w", target, err)
	}
	resp, err := a.transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("asking Envoy for %s: %w", target, err)
	}
	return resp, nil
}

// Get requests a path; otherwise it is like call.
func (a *Admin) Get(ctx context.Context, path string, answer any) error {
	return a.call(ctx, http.MethodGet, path, answer)
}

// call sends a request to the endpoint; any answer except 200 is an error. The JSON of the body is decoded into
// answer unless that is nil.
func (a *Admin) call(ctx context.Context, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	resp, err := a.Ask(ctx, method, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("asking Envoy for %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking Envoy for %s: status %d", path, resp.StatusCode)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("reading Envoy's answer to %s: %w", path, err)
	}
	return nil
}

// load is the work that Envoy has from clients.
type load struct {
	// requests are those in progress, connections the open ones, and total counts all
	// requests so far.
	requests, connections, total uint64
}

// load requests it. Requests to the admin endpoint itself, such as this one, are left
// out.
func (a *Admin) load(ctx context.Context) (load, error) {
	var answer struct {
		Stats []struct {
			Name  string
			Value uint64
		}
	}
	const path = `/stats?format=json&filter=^http\.(.*)\.downstream_(rq_active|rq_total|cx_active)$`
	if err := a.Get(ctx, path, &answer); err != nil {
		return load{}, err
	}
	var sum load
	for _, s := range answer.Stats {
		if strings.HasPrefix(s.Name, "http.admin.") {
			continue
		}
		switch s.Name[strings.LastIndexByte(s.Name, '.')+1:] {
		case "downstream_rq_active":
			sum.requests += s.Value
		case "downstream_cx_active":
			sum.connections += s.Value
		case "downstream_rq_total":
			sum.total += s.Value
		}
	}
	return sum, nil
}
