// Command demo-oidc runs a gateway with a service that requires a login, and an identity
// provider with two users, on this machine until Ctrl-C. Its data is deleted at the end.
//
// Usage: make demo-oidc [ARGS="--https-port 9443"]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// The time limits of the demo.
const (
	startTime = time.Minute
	endTime   = 20 * time.Second
	pollTime  = 50 * time.Millisecond
)

const (
	clientSecret = "demo-client-secret"
	password     = "demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo-oidc:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// demo has the running programs and their addresses.
type demo struct {
	out io.Writer
	// api, http, https and admin are HOST:PORT.
	api, http, https, xds, admin string
	listenIP                     string
	dir                          string
	// host is the host of the service, home its address.
	host, home string
	idp        *testkit.OIDCProvider
	gateway    *testkit.Gatehouse
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	d := demo{out: out, listenIP: "127.0.0.1", host: "shop.localhost"}
	flags := flag.NewFlagSet("demo-oidc", flag.ContinueOnError)
	flags.StringVar(&d.api, "api-addr", "127.0.0.1:1323", "address of the REST API")
	flags.StringVar(&d.xds, "xds-addr", "127.0.0.1:18000", "address of the xDS server")
	flags.StringVar(&d.admin, "admin-addr", "127.0.0.1:9001", "address of the admin port")
	flags.StringVar(&d.http, "http-port", "8080", "port of the HTTP listener")
	flags.StringVar(&d.https, "https-port", "8443", "port of the HTTPS listener")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	d.home = "https://" + d.host + ":" + d.https
	if d.dir, err = os.MkdirTemp("", "gatehouse-demo-oidc-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	defer func() { err = errors.Join(err, d.end(context.WithoutCancel(ctx))) }()
	if err := d.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the user has stopped it
		}
		return err
	}
	d.summary()
	select {
	case <-ctx.Done():
		d.print("\nending")
		return nil
	case <-d.gateway.Exited():
		return fmt.Errorf("the gateway has ended: %s", d.gateway.Stderr)
	case <-d.idp.Exited():
		return fmt.Errorf("the identity provider has ended: %s", d.idp.Stderr)
	}
}

func (d *demo) print(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...) //nolint:errcheck // nobody to tell
}

func (d *demo) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	// The gateway would report the HTTPS port only once a service has a certificate.
	for _, p := range []struct{ flag, port string }{{"http-port", d.http}, {"https-port", d.https}} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(d.listenIP, p.port))
		if err != nil {
			return fmt.Errorf(`port %s is taken (%w): end what listens there, or choose another one: make demo-oidc ARGS="--%s PORT"`, p.port, err, p.flag)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	authority, err := testkit.NewAuthority("Gatehouse demo")
	if err != nil {
		return err
	}
	d.print("starting an identity provider")
	if err := d.startProvider(ctx, authority); err != nil {
		return fmt.Errorf("starting the identity provider: %w", err)
	}
	d.print("starting a gateway")
	d.gateway, err = testkit.StartGatehouse(ctx, nil, "standalone", "--data-dir", filepath.Join(d.dir, "data"), "--api-addr", d.api, "--xds-addr", d.xds,
		"--admin-addr", d.admin, "--http-port", d.http, "--https-port", d.https, "--listen-ip", d.listenIP, "--log-format", "json", "--access-log", "off")
	if err != nil {
		return fmt.Errorf("starting the gateway: %w", err)
	}
	d.api = strings.TrimPrefix(d.gateway.API.URL, "http://")
	if err := d.gateway.WaitReady(ctx); err != nil {
		return err
	}
	backend, err := testkit.StartBackend("shop", testkit.BackendOptions{})
	if err != nil {
		return err
	}
	if err := d.configure(ctx, authority, backend.Port); err != nil {
		return err
	}
	return d.awaitLogin(ctx, authority)
}

// awaitLogin sends requests to the service until it requires a login. The identity
// provider may need some time.
func (d *demo) awaitLogin(ctx context.Context, authority *testkit.Authority) error {
	b := testkit.NewBrowser(authority)
	defer b.Close()
	for {
		v, err := b.Do(ctx, testkit.Request{URL: d.home + "/"})
		if err == nil && v.Status == http.StatusFound {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service does not ask for a login (%w): %s", errors.Join(ctx.Err(), err), v.Body)
		case <-time.After(pollTime):
		}
	}
}

func (d *demo) startProvider(ctx context.Context, authority *testkit.Authority) (err error) {
	dir := filepath.Join(d.dir, "provider")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	d.idp, err = testkit.StartOIDCProvider(ctx, dir, authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{{
			ID: "shop", Secret: clientSecret, RedirectURIs: []string{d.home + "/callback"}, PostLogoutRedirectURIs: []string{d.home + "/"},
		}},
		Users: map[string]testkit.OIDCUser{
			"ann": {Password: password, Claims: map[string]any{"email": "ann@shop.localhost", "groups": []string{"staff"}}},
			"bob": {Password: password, Claims: map[string]any{"email": "bob@shop.localhost", "groups": []string{"guests"}}},
		},
	})
	return err
}

// configure makes the calls that it prints.
func (d *demo) configure(ctx context.Context, authority *testkit.Authority, port int) error {
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{d.host}, NotAfter: time.Now().Add(24 * time.Hour)})
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"ca.pem": authority.PEM, "shop.crt": pair.Cert, "shop.key": pair.Key, "login.json": `{
  "client_id": "shop", "client_secret": "` + clientSecret + `", "cookie_secret": "cookies",
  "issuer": "` + d.idp.Issuer + `", "upstream": "login",
  "redirect_uri": "/callback", "logout_uri": "/logout", "scopes": ["email"],
  "require": {"groups": ["staff"]}, "claim_headers": {"X-User": "sub", "X-Email": "email"}
}`,
	} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	d.print("\nThese calls configure a service with a login; each is followed by its answer. The files are in %s.\n", d.dir)
	a := "http://" + d.api
	for _, line := range []string{
		"curl -sS -d Upstream_name=shop -d Upstream_ip=127.0.0.1 -d Upstream_port=" + strconv.Itoa(port) + " -d Upstream_weight=100 " + a + "/upstream",
		"curl -sS -d Service_Name=shop -d fqdn=" + d.host + " -d Https=redirect " + a + "/service",
		"curl -sS -d Route_Name=root -d Route_prefix=/ " + a + "/service/shop/route",
		"curl -sS -X POST " + a + "/service/shop/route/root/upstream/shop",
		"curl -sS -F Secret_name=shop -F Secret_cert=@shop.crt -F Secret_key=@shop.key " + a + "/secret",
		"curl -sS -X POST " + a + "/service/shop/secret/shop",
		"curl -sS -d Name=gw " + a + "/proxy",
		"curl -sS -X POST " + a + "/proxy/gw/service/shop",
		"curl -sS -d Secret_name=cookies --data-urlencode Secret_value=$(openssl rand -hex 32) " + a + "/secret",
		"curl -sS -F Secret_name=login-ca -F Secret_cert=@ca.pem " + a + "/secret",
		"curl -sS -d Upstream_name=login -d Upstream_ip=127.0.0.1 -d Upstream_port=" + strconv.Itoa(d.idp.Port) +
			" -d Upstream_protocol=tls -d Upstream_validation_subjectname=localhost -d Upstream_validation_cacertificate=login-ca " + a + "/upstream",
		"cat login.json",
		"curl -sS -F Filter_name=staff -F Filter_type=http_filter_oidc -F Filter_config=@login.json " + a + "/filter",
		"curl -sS -X POST '" + a + "/service/shop/filter/staff?wait=applied'",
	} {
		d.print("$ %s", line)
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = d.dir
		answer, err := cmd.CombinedOutput()
		d.print("%s", strings.TrimSpace(string(answer)))
		if err == nil && strings.Contains(string(answer), "urn:gatehouse:problem") {
			err = errors.New("the call was refused")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (d *demo) summary() {
	curl := "curl -sSi --cacert " + filepath.Join(d.dir, "ca.pem") + " "
	d.print(`
The service asks for a login. Open it in a browser:

  %[1]s/

  user  password
  ann   %[2]s      is in the group staff, and gets in
  bob   %[2]s      is not, and gets 403

The browser warns of two certificates, that of the service and that of the provider (%[3]s): an authority of this demo has signed both, in
%[4]s. The answer of the service shows what the backend gets: X-User and X-Email, and none of the cookies.
%[1]s/logout signs you out.

With curl, in a second shell:

  # a browser without a session is sent to the provider
  %[5]s%[1]s/
  # a program gets 401
  %[5]s-H 'Accept: application/json' %[1]s/
  # each step that needs no user
  bin/gatehouse login test shop --server http://%[6]s

The API is at http://%[6]s/. docs/login.md explains all of it. Ctrl-C ends the demo and deletes its files.`,
		d.home, password, d.idp.Issuer, filepath.Join(d.dir, "ca.pem"), curl, d.api)
}

// end stops what was started.
func (d *demo) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var failed error
	if d.gateway != nil {
		if _, err := d.gateway.Stop(ctx); err != nil {
			failed = errors.Join(err, d.gateway.Kill())
		}
	}
	if d.idp != nil && d.idp.Process != nil {
		failed = errors.Join(failed, d.idp.Kill())
	}
	return failed
}
