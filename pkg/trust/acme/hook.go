package acme

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// What a hook is asked for.
const (
	present = "present"
	cleanup = "cleanup"
)

const (
	// hookOutput bounds what is read of a hook, in bytes.
	hookOutput = 4 << 10
	// hookGrace is how long a program may take to end after it was killed.
	hookGrace = 2 * time.Second
)

// hookCall is one call of a hook.
type hookCall struct {
	action, host string
	record       txtRecord
}

// callHook asks the hook of an authority, and returns what it said if it did not do it.
func (w *Watch) callHook(ctx context.Context, a *authority, c hookCall) error {
	dns := a.config.DNS
	ctx, cancel := context.WithTimeout(ctx, dns.CallTime())
	defer cancel()
	began := time.Now()
	var err error
	if dns.Hook == model.HookExec {
		err = runProgram(ctx, w.opts.DNSExec, c)
	} else {
		err = w.callWebhook(ctx, a, c)
	}
	if ctx.Err() != nil && err != nil {
		err = &hookError{
			fmt.Sprintf("the dns hook did not %s the record in %s", c.action, dns.CallTime()), "see why the hook hangs, or set dns.timeout",
		}
	}
	w.count("hook_" + map[bool]string{true: "done", false: "failed"}[err == nil])
	w.opts.Log.Debug("dns hook called", "action", c.action, "host", c.host, "record", c.record.Name, "took", time.Since(began), "err", err)
	return err
}

// runProgram runs the program of the setting acme-dns-exec. It gets no setting of the gateway, which may be secret.
func runProgram(ctx context.Context, program string, c hookCall) error {
	cmd := exec.CommandContext(ctx, program, c.action, c.record.Name, c.record.Value)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GATEHOUSE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "ACME_HOST="+c.host)
	said := &firstBytes{most: hookOutput}
	cmd.Stderr = said
	// Its children end with it, and do not hold its output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = hookGrace
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text := fmt.Sprintf("the dns hook did not %s the record: %s", c.action, exitText(err))
	if line := strings.TrimSpace(said.kept.String()); line != "" {
		text += ": " + line
	}
	return &hookError{text, "see what the program of --acme-dns-exec says"}
}

func exitText(err error) string {
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.Exited() {
		return fmt.Sprintf("it ended with %d", exit.ExitCode())
	}
	return err.Error()
}

// firstBytes keeps the beginning of what is written. It is no io.ReaderFrom, which would read everything.
type firstBytes struct {
	kept bytes.Buffer
	most int
}

// Write implements io.Writer.
func (f *firstBytes) Write(p []byte) (int, error) {
	f.kept.Write(p[:min(len(p), f.most-f.kept.Len())])
	return len(p), nil
}

// hookClient follows no redirect: a request has the token.
func hookClient(dial Dial, pool *x509.CertPool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// reason is why a request failed, without its URL.
func reason(err error) string {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	return err.Error()
}

// callWebhook sends the call to the webhook.
func (w *Watch) callWebhook(ctx context.Context, a *authority, c hookCall) error {
	dns := a.config.DNS
	body, err := json.Marshal(map[string]string{"action": c.action, "host": c.host, "name": c.record.Name, "value": c.record.Value})
	if err != nil {
		return fmt.Errorf("writing the call of the webhook: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, dns.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("calling the webhook: %w", err)
	}
	token, err := dns.OpenToken(a.name, w.opts.Store.Unseal)
	if err != nil {
		return fmt.Errorf("opening the token of the webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gatehouse")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	authorities := w.opts.Authorities
	if a.dnsCA != nil {
		authorities = a.dnsCA.Cert
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authorities))
	res, err := hookClient(w.opts.Dial, pool).Do(req)
	if err != nil {
		return &hookError{
			fmt.Sprintf("the dns webhook cannot be reached to %s the record: %s", c.action, reason(err)),
			"check dns.url, and whether this machine reaches it",
		}
	}
	defer func() { _ = res.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(res.Body, hookOutput))
	if res.StatusCode/100 == 2 {
		return nil
	}
	text := fmt.Sprintf("the dns webhook did not %s the record: it answered %d", c.action, res.StatusCode)
	if line := strings.TrimSpace(string(said)); line != "" {
		text += ": " + line
	}
	return &hookError{text, "see what the webhook says"}
}
