package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// Prometheus is a running Prometheus.
type Prometheus struct {
	*Process
	URL string
}

// StartPrometheus runs Prometheus with a configuration on a free port, and returns when it is ready. dir is an empty
// directory.
func StartPrometheus(ctx context.Context, dir, config string) (*Prometheus, error) {
	path, err := Binary("prometheus")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of Prometheus: %w", err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := &Prometheus{URL: "http://" + addr}
	p.Process, err = startProcess(path, nil, "--config.file="+file, "--web.listen-address="+addr,
		"--storage.tsdb.path="+filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	ready := func() error { return get(ctx, http.DefaultClient, p.URL+"/-/ready") }
	if err := p.await(ctx, "Prometheus is ready", ready); err != nil {
		return nil, errors.Join(err, fmt.Errorf("it says: %s", p.Stderr), p.Kill())
	}
	return p, nil
}

// Query returns the values of an expression now, by the labels of their series in the form of JSON.
func (p *Prometheus) Query(ctx context.Context, expression string) (map[string]string, error) {
	text, err := read(ctx, http.DefaultClient, p.URL+"/api/v1/query?query="+url.QueryEscape(expression), "application/json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("reading the answer of Prometheus: %w", err)
	}
	values := map[string]string{}
	for _, r := range answer.Data.Result {
		values[toJSON(r.Metric)] = fmt.Sprint(r.Value[1])
	}
	return values, nil
}
