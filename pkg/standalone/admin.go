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

// activeRequests counts the requests that clients wait for. Those of the admin
// endpoint itself, such as this one, are left out.
func (e *Envoy) activeRequests(ctx context.Context) (int, error) {
	var answer struct {
		Stats []struct {
			Name  string `json:"name"`
			Value int    `json:"value"`
		} `json:"stats"`
	}
	const path = `/stats?format=json&type=Gauges&filter=^http\.(.*)\.downstream_rq_active$`
	if err := e.call(ctx, http.MethodGet, path, &answer); err != nil {
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
