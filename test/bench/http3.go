package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// http3 measures requests over HTTP/3 beside the same over HTTP/2, through one Envoy.
func (l *lab) http3(ctx context.Context) ([]section, error) {
	b, err := newBackend(ctx, true)
	if err != nil {
		return nil, err
	}
	defer b.close()
	route := layout.Routes(1, 1, b.port())[0]
	p, err := l.prepareGatehouse(ctx, setting{routes: []layout.Route{route}, concurrency: 1})
	if err != nil {
		return nil, err
	}
	side, err := p.startServing(ctx, []layout.Route{route})
	if err != nil {
		return nil, err
	}
	trusted, err := serveHTTP3(ctx, p, route)
	if err != nil {
		return nil, err
	}
	url := "https://" + local(httpsPort(p.ports.http)) + route.Prefix
	protocols := []func() http.RoundTripper{
		func() http.RoundTripper { return &http3.Transport{TLSClientConfig: trusted.Clone()} },
		func() http.RoundTripper {
			return &http.Transport{TLSClientConfig: trusted.Clone(), ForceAttemptHTTP2: true}
		},
	}
	for i, protocol := range protocols {
		err := eventually(ctx, "an answer", func() error {
			got, err := ask(ctx, protocol(), url, route.FQDN())
			if err == nil && got != 3-i {
				err = fmt.Errorf("HTTP/%d", got)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	results := make([]loads, len(protocols))
	for i := range l.opts.rpsRounds {
		for turn := range protocols {
			k := (turn + i) % len(protocols)
			if err := l.loadClients(ctx, side.envoy, protocols[k], url, route.FQDN(), &results[k]); err != nil {
				return nil, err
			}
		}
	}
	return []section{{
		Title: "Requests over HTTP/3", Of: "HTTP/3", Beside: "HTTP/2",
		Rows: besideLoads("access log off", results[0], results[1]),
		Notes: []string{fmt.Sprintf("%d connections, %d rounds of %s for each, in turns, which begin with handshakes. One worker "+
			"thread. The clients (Go's HTTP/2, quic-go) are in this process and cost more than the Envoy does: its CPU for a "+
			"request is what counts.", l.opts.rpsConns, l.opts.rpsRounds, l.opts.rpsRound)},
	}}, l.stop(side.program, side.envoy)
}

// serveHTTP3 gives the service of a route a certificate, and its proxy HTTP/3. It returns what a client trusts.
func serveHTTP3(ctx context.Context, p *prepared, route layout.Route) (*tls.Config, error) {
	authority, err := testkit.NewAuthority("bench")
	if err != nil {
		return nil, err
	}
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{route.FQDN()}})
	if err != nil {
		return nil, err
	}
	c := gatehouseCalls{newCaller(p.ports.api), p.ports.http}
	for _, call := range [][]string{
		{"/secret", "Secret_name", "pair", "Secret_cert", pair.Cert, "Secret_key", pair.Key},
		{"/service/" + route.Service + "/secret/pair"},
	} {
		if err := c.form(ctx, call[0], call[1:]...); err != nil {
			return nil, err
		}
	}
	err = c.send(ctx, http.MethodPatch, "/proxy/"+layout.Node, "application/json", []byte(`{"Http3": true}`))
	return &tls.Config{RootCAs: authority.Pool(), ServerName: route.FQDN(), MinVersion: tls.VersionTLS13}, err
}

// ask sends one request, and returns the version of HTTP of its answer.
func ask(ctx context.Context, client http.RoundTripper, url, host string) (version int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Host = host
	resp, err := client.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", strconv.Itoa(resp.StatusCode))
	}
	return resp.ProtoMajor, err
}

// loadClients sends requests over some connections for a while, which makes one round.
func (l *lab) loadClients(ctx context.Context, envoy *process, client func() http.RoundTripper, url, host string, to *loads) error {
	before, err := envoy.threads()
	if err != nil {
		return err
	}
	var total atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range l.opts.rpsConns {
		group.Go(func() error {
			c := client()
			if closer, ok := c.(io.Closer); ok {
				defer closer.Close()
			}
			if idle, ok := c.(*http.Transport); ok {
				defer idle.CloseIdleConnections()
			}
			for time.Since(began) < l.opts.rpsRound {
				if _, err := ask(ctx, c, url, host); err != nil {
					return fmt.Errorf("under load: %w", err)
				}
				total.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := envoy.threads()
	if err != nil {
		return err
	}
	to.rate = append(to.rate, float64(total.Load())/took.Seconds())
	to.requests += total.Load()
	to.cpu += after - before
	return nil
}
