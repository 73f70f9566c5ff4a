package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// pollEvery is the time between two questions to the admin endpoint.
const pollEvery = 50 * time.Millisecond

// maxAnswer bounds what is read of an admin answer.
const maxAnswer = 1 << 20

// errNoAdmin says that Envoy has not opened its admin endpoint yet.
var errNoAdmin = errors.New("envoy has no admin endpoint yet")

// call makes a request of the admin endpoint; any answer but 200 is an error.
// The body is decoded into answer, when that is not nil.
func (e *Envoy) call(ctx context.Context, p *process, method, path string, answer any) error {
	addr := p.adminAddr()
	if addr == "" {
		return errNoAdmin
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking Envoy for %s: %w", path, err)
	}
	resp, err := e.admin.Do(req)
	if err != nil {
		return fmt.Errorf("asking Envoy for %s: %w", path, err)
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

// activeRequests counts the requests that clients wait for. Those of the admin
// endpoint itself, such as this one, are left out.
func (e *Envoy) activeRequests(ctx context.Context, p *process) (int, error) {
	var answer struct {
		Stats []struct {
			Name  string `json:"name"`
			Value int    `json:"value"`
		} `json:"stats"`
	}
	const path = `/stats?format=json&type=Gauges&filter=^http\.(.*)\.downstream_rq_active$`
	if err := e.call(ctx, p, http.MethodGet, path, &answer); err != nil {
		return 0, err
	}
	sum := 0
	for _, s := range answer.Stats {
		if s.Name != "http.admin.downstream_rq_active" {
			sum += s.Value
		}
	}
	return sum, nil
}
