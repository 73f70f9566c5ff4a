package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// checkAccess decides whether the API may be open while there is no token, and
// says in the log who can call it (rest-api.md, "Authentication"). The error
// is that of an API that others could reach and nobody could call.
func checkAccess(ctx context.Context, cfg config.Config, addr net.Addr, tokens store.Tokens, log *slog.Logger) (mayOpen bool, err error) {
	tcp, ok := addr.(*net.TCPAddr)
	local := ok && tcp.IP.IsLoopback()
	configured := cfg.APIAdminToken != ""
	if !configured {
		if configured, err = tokens.HasTokens(ctx); err != nil {
			return false, err
		}
	}
	switch {
	case !configured && !local && !cfg.InsecureAPI:
		return false, fmt.Errorf("--api-addr %s is not a loopback address and the REST API has no token, so everybody who reaches it could change everything: "+
			"give a token with --api-admin-token-file, make one with gatehouse token create NAME --role admin %s, or allow it with --insecure-api", cfg.APIAddr, databaseFlag(cfg))
	case !configured && !local:
		log.Warn("whoever reaches the api has it without a token", "api", addr.String(), "reason", "--insecure-api")
	case !configured:
		log.Info("the api needs no token, for only this machine reaches it", "api", addr.String())
	case !local && cfg.APITLSCert == "":
		log.Warn("tokens reach the api unencrypted: give --api-tls-cert, or let a proxy do TLS", "api", addr.String())
	}
	return local || cfg.InsecureAPI, nil
}
