package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
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

// Series are the values of one series of a query, by the time in seconds since 1970.
type Series struct {
	// Name is for the caller.
	Name   string
	Labels map[string]string
	Values map[int64]float64
}

// QueryRange returns the series of an expression. Values that are no number are left out.
func (p *Prometheus) QueryRange(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]Series, error) {
	text, err := read(ctx, http.DefaultClient, fmt.Sprintf("%s/api/v1/query_range?query=%s&start=%d&end=%d&step=%s",
		p.URL, url.QueryEscape(expression), from.Unix(), to.Unix(), step), "application/json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("reading the answer of Prometheus: %w", err)
	}
	var list []Series
	for _, r := range answer.Data.Result {
		s := Series{Labels: r.Metric, Values: map[int64]float64{}}
		for _, pair := range r.Values {
			at, _ := pair[0].(float64)
			text, _ := pair[1].(string)
			if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				s.Values[int64(at)] = v
			}
		}
		if len(s.Values) > 0 {
			list = append(list, s)
		}
	}
	return list, nil
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
