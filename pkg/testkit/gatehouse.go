package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Gatehouse is a running gatehouse serve or standalone.
type Gatehouse struct {
	*Process
	// API is the REST API.
	API API
	// XDSAddr is where Envoys connect, HOST:PORT.
	XDSAddr string
	// Admin is the admin port, if there is one.
	Admin API
	// Debug is the debug server, if there is one, at the path of its profiles.
	Debug API
}

// StartGatehouse runs the program until it logs that it is up. Use port 0 in --api-addr
// and --xds-addr unless a test must know them before. env are variables of the form
// NAME=value.
func StartGatehouse(ctx context.Context, env []string, args ...string) (*Gatehouse, error) {
	path, err := Binary("gatehouse")
	if err != nil {
		return nil, err
	}
	return StartGatehouseAt(ctx, path, env, args...)
}

// StartGatehouseAt does the same with the program at a path, such as another version.
func StartGatehouseAt(ctx context.Context, path string, env []string, args ...string) (*Gatehouse, error) {
	p, err := startProcess(path, env, args...)
	if err != nil {
		return nil, err
	}
	g := &Gatehouse{Process: p}
	if err := p.await(ctx, "gatehouse is up", g.readAddresses); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return g, nil
}

// SpawnGatehouse runs the program without waiting, for example because it is expected
// to fail.
func SpawnGatehouse(env []string, args ...string) (*Process, error) {
	path, err := Binary("gatehouse")
	if err != nil {
		return nil, err
	}
	return startProcess(path, env, args...)
}

var errNotUp = errors.New("it has not said so yet")

func (g *Gatehouse) readAddresses() error {
	records := g.Records("gatehouse is up")
	if len(records) == 0 {
		return errNotUp
	}
	api, _ := records[0]["api"].(string)
	xds, _ := records[0]["xds"].(string)
	admin, _ := records[0]["admin"].(string)
	debug, _ := records[0]["debug"].(string)
	g.API, g.XDSAddr, g.Admin = API{URL: api}, xds, API{URL: "http://" + admin}
	g.Debug = API{URL: strings.TrimSuffix(debug, "/")}
	return nil
}

// Records returns the log records with that message. The log must be JSON, which is the
// default.
func (g *Gatehouse) Records(msg string) []map[string]any {
	var list []map[string]any
	for _, line := range g.Stderr.Lines() {
		var record map[string]any
		if json.Unmarshal([]byte(line), &record) == nil && record["msg"] == msg {
			list = append(list, record)
		}
	}
	return list
}

// WaitReady returns when GET /ready answers 200.
func (g *Gatehouse) WaitReady(ctx context.Context) error {
	return g.await(ctx, "gatehouse is ready", func() error {
		a, err := g.API.Get(ctx, "/ready")
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", a.Status, a.Body)
		}
		return err
	})
}
