package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// maxReadyAnswer is how many bytes of an answer are read.
const maxReadyAnswer = 64 << 10

// Ready requests /ready of the gateway that runs with cfg on this machine. It returns nil
// if the gateway is ready, otherwise the reason.
func Ready(ctx context.Context, cfg config.Config, limit time.Duration) error {
	scheme := "http"
	if cfg.APITLSCert != "" {
		scheme = "https"
	}
	where, err := readyURL(scheme, "api-addr", cfg.APIAddr)
	if err != nil {
		return err
	}
	return askReady(ctx, "the gateway", where, "", limit)
}

// EnvoyReady requests /ready of the Envoy whose bootstrap was made with cfg.
func EnvoyReady(ctx context.Context, cfg config.Config, limit time.Duration) error {
	if cfg.AdminSocket != "" {
		return askReady(ctx, "Envoy", "http://localhost/ready", cfg.AdminSocket, limit)
	}
	where, err := readyURL("http", "admin-addr", cfg.AdminAddr)
	if err != nil {
		return err
	}
	return askReady(ctx, "Envoy", where, "", limit)
}

// urlEvery is how often URLReady sends a request.
const urlEvery = 500 * time.Millisecond

// URLReady requests a URL until it answers 200, or anything if anyStatus is set, for at
// most limit. The error is that of the last attempt.
func URLReady(ctx context.Context, url string, anyStatus bool, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := askReady(ctx, "the server", url, "", limit)
		if answer := (*readyAnswer)(nil); err == nil || anyStatus && errors.As(err, &answer) {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(urlEvery):
		}
	}
}

// readyAnswer is an answer other than 200.
type readyAnswer struct {
	where  string
	status int
	reason string
}

func (a *readyAnswer) Error() string {
	return fmt.Sprintf("%s answers %d: %s", a.where, a.status, a.reason)
}

// RunsEnvoyAlone reports whether process 1 of this container is an Envoy, or the gatehouse
// envoy that drains one. proc is /proc.
func RunsEnvoyAlone(proc fs.FS) bool {
	cmdline, err := fs.ReadFile(proc, "1/cmdline")
	if err != nil {
		return false
	}
	args := strings.Split(string(cmdline), "\x00")
	name := path.Base(args[0])
	return name == "envoy" || name == "gatehouse" && len(args) > 1 && args[1] == config.Envoy
}

// askReady requests the readiness of who at where, over a Unix socket if socket is not
// empty.
func askReady(ctx context.Context, who, where, socket string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return err
	}
	// The certificate need not name the loopback address, and the request contains no
	// secret. The environment's proxy settings are for other machines.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // see above
	}}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", who, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReadyAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", where, err)
	}
	if resp.StatusCode != http.StatusOK {
		return &readyAnswer{where, resp.StatusCode, reasonIn(body)}
	}
	return nil
}

// readyURL returns the readiness URL of the program whose address a setting has. An
// address for all interfaces becomes the loopback address.
func readyURL(scheme, setting, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("reading --%s %q: %w", setting, addr, err)
	}
	if port == "0" {
		return "", fmt.Errorf("--%s %s names no port: give the one that was chosen", setting, addr)
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.IsUnspecified():
		host = "::1"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/ready", nil
}

// reasonIn returns the detail of a problem document, or the text itself.
func reasonIn(body []byte) string {
	var problem struct{ Detail string }
	if err := json.Unmarshal(body, &problem); err == nil && problem.Detail != "" {
		return problem.Detail
	}
	return strings.TrimSpace(string(body))
}
