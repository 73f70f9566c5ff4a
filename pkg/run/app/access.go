package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// port is a listener whose callers authenticate with the API's tokens.
type port struct {
	flag, given string // the setting of its address, and its value
	addr        net.Addr
	// could is what anybody could do there without a token.
	could string
}

// checkAccess decides whether the API may be open while there is no token, and
// says in the log who can call it (rest-api.md, "Authentication").
func checkAccess(
	ctx context.Context, cfg config.Config, addr net.Addr, tokens store.Tokens, log *slog.Logger,
) (open bool, err error) {
	p := port{"api-addr", cfg.APIAddr, addr, "change everything"}
	needed, err := p.needsToken(ctx, cfg, tokens)
	switch {
	case err != nil:
		return false, err
	case !needed && !p.local():
		log.Warn("everybody who reaches the api can use it without a token", "api", addr.String(), "reason", "--insecure-api")
	case !needed:
		log.Info("the api needs no token, because only this machine reaches it", "api", addr.String())
	case !p.local() && cfg.APITLSCert == "":
		log.Warn("tokens reach the api unencrypted: give --api-tls-cert, or let a proxy do TLS", "api", addr.String())
	}
	return mayOpen(p, cfg), nil
}

// checkAdminAccess is the same for the admin port.
func checkAdminAccess(
	ctx context.Context, cfg config.Config, addr net.Addr, tokens store.Tokens, log *slog.Logger,
) (open bool, err error) {
	p := port{"admin-addr", cfg.AdminAddr, addr, "read the state of the gateway and change Envoy's log level"}
	needed, err := p.needsToken(ctx, cfg, tokens)
	switch {
	case err != nil:
		return false, err
	case !needed && !p.local():
		log.Warn("everybody who reaches the admin port can use it without a token", "admin", addr.String(),
			"reason", "--insecure-api")
	case !p.local():
		log.Warn("tokens reach the admin port unencrypted: let a proxy do TLS", "admin", addr.String())
	}
	return mayOpen(p, cfg), nil
}

// mayOpen reports whether nobody needs a token while there is none. With an identity provider, an admin can sign in.
func mayOpen(p port, cfg config.Config) bool {
	return cfg.Console.Issuer == "" && (p.local() || cfg.InsecureAPI)
}

func (p port) local() bool {
	tcp, ok := p.addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// needsToken reports whether the API has a token, and so requires one. It returns an
// error if other machines could reach the port without one.
func (p port) needsToken(ctx context.Context, cfg config.Config, tokens store.Tokens) (bool, error) {
	if cfg.APIAdminToken != "" || cfg.Console.Issuer != "" {
		return true, nil
	}
	some, err := tokens.HasTokens(ctx)
	if err == nil && !some && !p.local() && !cfg.InsecureAPI {
		give := "give a token with --api-admin-token-file, make one with gatehouse token create NAME --role admin " +
			databaseFlag(cfg)
		if cfg.Mode == config.ModeKubernetes {
			give = "give a token with --api-admin-token-file"
		}
		err = &SettingError{fmt.Errorf("--%s %s is not a loopback address and the REST API has no token, "+
			"so everybody who reaches it could %s: %s, or allow it with --insecure-api",
			p.flag, p.given, p.could, give)}
	}
	return some, err
}
