package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Envoy is a running Envoy.
type Envoy struct {
	*Process
	// Admin is its admin endpoint.
	Admin API
}

// StartEnvoy runs an Envoy with the output of "gatehouse bootstrap" for a proxy and a
// control plane, and returns when it has its configuration. dir is an empty directory.
// Its admin endpoint is a socket there, with all paths.
func StartEnvoy(ctx context.Context, dir, proxy, xdsAddr string) (*Envoy, error) {
	socket := filepath.Join(dir, "admin.sock")
	bootstrap, err := PrintBootstrap(ctx, proxy, xdsAddr, "--admin-socket", socket)
	if err != nil {
		return nil, err
	}
	return RunEnvoy(ctx, dir, bootstrap)
}

// StartEnvoyOnPort is StartEnvoy with the admin endpoint on a port.
func StartEnvoyOnPort(ctx context.Context, dir, proxy, xdsAddr string) (*Envoy, error) {
	bootstrap, err := PrintBootstrap(ctx, proxy, xdsAddr, "--admin-addr", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return RunEnvoy(ctx, dir, bootstrap)
}

// LargeExpression is a regular expression that Gatehouse allows, and that an Envoy of
// StartStrictEnvoy refuses.
const LargeExpression = "/item/[a-z]{1,64}/[0-9a-f]{40}"

// StartStrictEnvoy is StartEnvoy with a smaller limit for regular expressions than in
// Gatehouse's bootstrap.
func StartStrictEnvoy(ctx context.Context, dir, proxy, xdsAddr string) (*Envoy, error) {
	const generous, strict = "re2.max_program_size.error_level: 10000", "re2.max_program_size.error_level: 100"
	bootstrap, err := PrintBootstrap(ctx, proxy, xdsAddr, "--admin-socket", filepath.Join(dir, "admin.sock"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(bootstrap, generous) {
		return nil, fmt.Errorf("the bootstrap has no %s to change", generous)
	}
	return RunEnvoy(ctx, dir, strings.Replace(bootstrap, generous, strict, 1))
}

// RunEnvoy runs an Envoy with any bootstrap that has an admin endpoint, and returns
// when it has its configuration. dir is an empty directory; args are additional
// arguments.
func RunEnvoy(ctx context.Context, dir, bootstrap string, args ...string) (*Envoy, error) {
	path, err := Binary("envoy")
	if err != nil {
		return nil, err
	}
	return runEnvoy(ctx, dir, bootstrap, nil, append([]string{path}, args...))
}

// runEnvoy is RunEnvoy with additional environment variables, and a command to which the
// arguments that every Envoy gets are added.
func runEnvoy(ctx context.Context, dir, bootstrap string, env, command []string) (*Envoy, error) {
	config, admin := filepath.Join(dir, "bootstrap.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(config, []byte(bootstrap), 0o600); err != nil {
		return nil, err
	}
	args := []string{"-c", config, "--admin-address-path", admin, "--disable-hot-restart", "--log-level", "warning"}
	p, err := startProcess(command[0], env, slices.Concat(command[1:], args)...)
	if err != nil {
		return nil, err
	}
	e := &Envoy{Process: p}
	err = p.await(ctx, "Envoy is live", func() error {
		addr, err := os.ReadFile(admin)
		if err != nil {
			return err
		}
		if e.Admin = (API{URL: "http://" + string(addr)}); filepath.IsAbs(string(addr)) {
			e.Admin = API{URL: "http://envoy", Socket: string(addr)}
		}
		a, err := e.Admin.Get(ctx, "/ready")
		if err == nil && strings.TrimSpace(a.Body) != "LIVE" {
			err = errors.New(a.Body)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return e, nil
}

// PrintBootstrap returns the output of "gatehouse bootstrap" with additional arguments.
func PrintBootstrap(ctx context.Context, proxy, xdsAddr string, more ...string) (string, error) {
	p, err := SpawnGatehouse(nil, append([]string{"bootstrap", "--proxy", proxy, "--xds-addr", xdsAddr}, more...)...)
	if err != nil {
		return "", err
	}
	code, err := p.Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("printing the bootstrap: exit code %d: %s", code, p.Stderr)
	}
	return p.Stdout.String(), err
}
