package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// demoName is the name of the demo's upstream and service.
const demoName = "demo"

// Time limits of the demo.
const (
	callTime = 10 * time.Second
	// firstAnswerTime is how long the first answer through Envoy may take.
	firstAnswerTime = 30 * time.Second
)

// Demo configures a first service with the calls that a user would make, and runs the
// backend behind it.
type Demo struct {
	// API and Gateway are the base URLs of the REST API and of the HTTP
	// listener, such as http://127.0.0.1:1323.
	API, Gateway string
	// HTTPS is the base URL of the HTTPS listener, which exists as soon as a service has a
	// certificate; empty omits it.
	HTTPS string
	// Token is sent to the API unless it is empty; TokenText replaces it in the lines that
	// are shown, as shell text.
	Token, TokenText string
	// Proxy is the name of the gateway's proxy object.
	Proxy string
	// Ready is closed when Envoy serves: a first configuration is made only then. The
	// backend of an earlier one starts before.
	Ready <-chan struct{}
	// Program is how the program was called, and LogFile where its log is; empty if the
	// user sees the log.
	Program, LogFile string
	// Out is for the user.
	Out io.Writer
}

// Run makes the calls if the store is empty, and serves the backend until ctx ends. The
// error says which call failed.
func (d Demo) Run(ctx context.Context) error {
	err := d.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d Demo) run(ctx context.Context) error {
	empty, err := d.storeIsEmpty(ctx)
	if err != nil {
		return err
	}
	if !empty {
		return d.resume(ctx)
	}
	backend, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("starting the demo's backend: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveEcho(ctx, backend) })
	group.Go(func() error { return d.show(ctx, backend.Addr().(*net.TCPAddr).Port) })
	return group.Wait()
}

// resume runs the backend of an earlier demo, and does not change the store.
func (d Demo) resume(ctx context.Context) error {
	d.print("\nThe store already has a configuration: the demo adds nothing to it.")
	addr, found, err := d.storedBackend(ctx)
	if err != nil {
		return err
	}
	if !found {
		d.printSummary()
		return nil
	}
	backend, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		d.print("Upstream %q points at %s, which another program uses: %v.", demoName, addr, cause(err))
		d.printSummary()
		return nil
	}
	d.print("The backend of upstream %q runs again, at %s. Try:\n\n  %s\n", demoName, addr, call{url: d.Gateway + "/"})
	d.printSummary()
	return serveEcho(ctx, backend)
}

// show makes the specification's calls, then a request through Envoy.
func (d Demo) show(ctx context.Context, port int) error {
	select {
	case <-d.Ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.print("\nThe store is empty. These calls configure a first service; each is followed by its answer.\n")
	for _, c := range d.calls(port) {
		status, body, err := c.do(ctx)
		if err != nil {
			return fmt.Errorf("making the demo's call %s: %w", c, err)
		}
		d.print("$ %s\n%d %s\n", c, status, body)
		if status >= http.StatusBadRequest {
			return fmt.Errorf("the demo's call %s was refused with status %d: %s", c, status, body)
		}
	}
	return d.showAnswer(ctx)
}

func (d Demo) calls(port int) []call {
	return d.withToken([]call{
		{url: d.API + "/upstream", form: []string{
			"Upstream_name=" + demoName, "Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(port),
			"Upstream_hc_path=/", "Upstream_weight=100",
		}},
		{url: d.API + "/service", form: []string{"Service_Name=" + demoName, "fqdn=*"}},
		{url: d.API + "/service/" + demoName + "/route", form: []string{"Route_Name=root", "Route_prefix=/"}},
		{url: d.API + "/service/" + demoName + "/route/root/upstream/" + demoName, post: true},
		{url: d.API + "/proxy", form: []string{"Name=" + d.Proxy}},
		{url: d.API + "/proxy/" + d.Proxy + "/service/" + demoName, post: true},
	})
}

// withToken adds the token to the calls of the API, and to no other.
func (d Demo) withToken(calls []call) []call {
	for i, c := range calls {
		if d.Token != "" && strings.HasPrefix(c.url, d.API+"/") {
			calls[i].token, calls[i].tokenText = d.Token, d.TokenText
		}
	}
	return calls
}

// next returns what the user may try: a second service in four calls, and a request to it.
func (d Demo) next() []call {
	return d.withToken([]call{
		{url: d.API + "/service", form: []string{"Service_Name=hello", "fqdn=hello.local"}},
		{url: d.API + "/service/hello/route", form: []string{"Route_Name=root", "Route_prefix=/"}},
		{url: d.API + "/service/hello/route/root/upstream/" + demoName, post: true},
		{url: d.API + "/proxy/" + d.Proxy + "/service/hello", post: true},
		{url: d.Gateway + "/greeting", host: "hello.local"},
	})
}

// showAnswer sends requests to Envoy until the configuration has reached it.
func (d Demo) showAnswer(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, firstAnswerTime)
	defer cancel()
	request := call{url: d.Gateway + "/"}
	last := "no answer yet"
	for {
		status, body, err := request.do(limit)
		if err == nil && status == http.StatusOK {
			d.print("And a request through Envoy:\n\n$ %s\n%d %s\n", request, status, body)
			d.print("Try next, in a second shell: another service beside this one, and a request to it.\n")
			for _, c := range d.next() {
				d.print("  %s", c)
			}
			d.printSummary()
			return nil
		}
		switch {
		case limit.Err() != nil:
			return fmt.Errorf("no answer came through Envoy within %s; the last try of %s: %s", firstAnswerTime, request, last)
		case err != nil:
			last = err.Error()
		default:
			last = fmt.Sprintf("status %d: %s", status, body)
		}
		wait(limit, pollEvery)
	}
}

// storeIsEmpty reports whether there are no upstreams, services and proxies.
func (d Demo) storeIsEmpty(ctx context.Context) (bool, error) {
	for _, kind := range []string{"/upstream", "/service", "/proxy"} {
		rows, err := d.rows(ctx, kind+"?limit=1")
		if err != nil || len(rows) > 0 {
			return false, err
		}
	}
	return true, nil
}

// storedBackend returns the address of the upstream of an earlier demo, if it exists and
// is on this machine.
func (d Demo) storedBackend(ctx context.Context) (addr string, found bool, err error) {
	rows, err := d.rows(ctx, "/upstream?name="+demoName)
	if err != nil {
		return "", false, err
	}
	for _, row := range rows {
		var u struct {
			Name string `json:"upstream_name"`
			IP   string `json:"upstream_ip"`
			Port int    `json:"upstream_port"`
		}
		if err := json.Unmarshal(row, &u); err != nil {
			return "", false, fmt.Errorf("reading upstream %q: %w", demoName, err)
		}
		if ip, err := netip.ParseAddr(u.IP); err == nil && ip.IsLoopback() && u.Name == demoName {
			return net.JoinHostPort(u.IP, strconv.Itoa(u.Port)), true, nil
		}
	}
	return "", false, nil
}

// rows reads a list of the API: {"data":{"<word>_<kind>":[...]}}.
func (d Demo) rows(ctx context.Context, path string) ([]json.RawMessage, error) {
	status, body, err := d.withToken([]call{{url: d.API + path}})[0].do(ctx)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, body)
	}
	var answer struct{ Data map[string][]json.RawMessage }
	if err == nil {
		err = json.Unmarshal([]byte(body), &answer)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s for the demo: %w", path, err)
	}
	var rows []json.RawMessage
	for _, list := range answer.Data {
		rows = append(rows, list...)
	}
	return rows, nil
}

func (d Demo) print(format string, args ...any) {
	fmt.Fprintf(d.Out, format+"\n", args...) //nolint:errcheck // nobody to tell
}
