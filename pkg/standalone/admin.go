package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// pollEvery is the time between two questions to the admin endpoint.
const pollEvery = 50 * time.Millisecond

// maxAnswer bounds what is read of an admin answer.
const maxAnswer = 8 << 20

// askTime bounds a call.
const askTime = time.Second

// errNoAdmin says that no Envoy runs.
var errNoAdmin = errors.New("envoy does not run")

// Ask makes a request of Envoy's own admin endpoint, whatever it is for. The
// caller reads and closes the answer.
func (e *Envoy) Ask(ctx context.Context, method, target string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://envoy"+target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking Envoy for %s: %w", target, err)
	}
	resp, err := e.admin.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("asking Envoy for %s: %w", target, err)
	}
	return resp, nil
}

// call makes a request of the admin endpoint; any answer but 200 is an error.
// The body is decoded into answer, when that is not nil.
func (e *Envoy) call(ctx context.Context, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	resp, err := e.Ask(ctx, method, path)
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

// load is what clients have Envoy do.
type load struct {
	// requests are those that clients wait for, connections the open ones, and total
	// counts all requests so far.
	requests, connections, total uint64
}

// load asks for it. What concerns the admin endpoint itself, such as this, is left out.
func (e *Envoy) load(ctx context.Context) (load, error) {
	var answer struct{ Stats []stat }
	const path = `/stats?format=json&filter=^http\.(.*)\.downstream_(rq_active|rq_total|cx_active)$`
	if err := e.call(ctx, http.MethodGet, path, &answer); err != nil {
		return load{}, err
	}
	var sum load
	for _, s := range answer.Stats {
		if strings.HasPrefix(s.Name, "http.admin.") {
			continue
		}
		switch s.Name[strings.LastIndexByte(s.Name, '.')+1:] {
		case "downstream_rq_active":
			sum.requests += uint64(s.Value)
		case "downstream_cx_active":
			sum.connections += uint64(s.Value)
		case "downstream_rq_total":
			sum.total += uint64(s.Value)
		}
	}
	return sum, nil
}
