package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/expiry"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

// xdsPort is what clients of the xDS port need.
type xdsPort struct {
	listener net.Listener
	refusals *server.Refusals
	// tls is nil if the port does no TLS.
	tls *xdsauth.TLS
	// tokens are those of the port's clients.
	tokens *xdsauth.TokenSet
	auth   *xdsauth.Authenticator
	// socket is for the Envoy of this program, if clients of the port must authenticate; otherwise nil.
	socket net.Listener
	// own is the proxy of that Envoy.
	own string
}

// open reads the certificates of the port, which is bound, and decides which clients must authenticate. own is the
// Envoy of this program.
func (x *xdsPort) open(
	ctx context.Context, cfg config.Config, tokens store.ProxyTokens, own ownEnvoy, log *slog.Logger,
) (err error) {
	x.refusals, x.own = server.NewRefusals(log), own.proxy
	if cfg.XDSTLSCert != "" {
		x.tls, err = xdsauth.OpenTLS(xdsauth.TLSOptions{
			Cert: cfg.XDSTLSCert, Key: cfg.XDSTLSKey, ClientCA: cfg.XDSTLSClientCA, ClientCRL: cfg.XDSTLSClientCRL,
			ReadFile: os.ReadFile, Now: time.Now, Refusals: x.refusals, Log: log,
		})
		if err != nil {
			return err
		}
	}
	open, err := checkXDSAccess(ctx, cfg, x.listener.Addr(), tokens, log)
	if err != nil {
		return err
	}
	// Before a client can present one.
	x.tokens = xdsauth.NewTokenSet(tokens, log, nil)
	if err := x.tokens.Refresh(ctx); err != nil {
		return err
	}
	x.auth = xdsauth.New(xdsauth.Options{Open: open, Tokens: x.tokens})
	if !open && own.xdsSocket != "" {
		x.socket, err = listenOwn(ctx, own.xdsSocket)
	}
	return err
}

// params adds the address where the own Envoy connects to its bootstrap.
func (x *xdsPort) params(p envoy.Params) envoy.Params {
	if x.socket != nil {
		p.XDSSocket = x.socket.Addr().String()
	} else {
		p.XDSAddr = reachableAddr(x.listener.Addr())
	}
	return p
}

// checkXDSAccess decides whether the port is open to clients that do not authenticate. It logs who may read
// configurations.
func checkXDSAccess(
	ctx context.Context, cfg config.Config, addr net.Addr, tokens store.ProxyTokens, log *slog.Logger,
) (open bool, err error) {
	p := port{flag: "xds-addr", given: cfg.XDSAddr, addr: addr}
	at := []any{"xds", addr.String()}
	switch {
	case cfg.InsecureXDS && p.local():
		log.Info("the xds port requires no authentication, and only this machine reaches it",
			append(at, "reason", "--insecure-xds")...)
		return true, nil
	case cfg.InsecureXDS:
		log.Warn("everybody who reaches the xds port can read every configuration, private keys included",
			append(at, "reason", "--insecure-xds")...)
		return true, nil
	case cfg.XDSTLSClientCA != "":
		log.Info("clients of the xds port authenticate", append(at, "by", "certificate or token")...)
		return false, nil
	case cfg.XDSTLSCert != "":
		log.Info("clients of the xds port authenticate", append(at, "by", "token")...)
		return false, nil
	case p.local():
		return true, nil
	}
	some, err := tokens.HasProxyTokens(ctx)
	if err != nil {
		return false, err
	}
	if !some {
		return false, &SettingError{fmt.Errorf("--%s %s is not a loopback address, and clients do not authenticate there, "+
			"so everybody who reaches it could read the configuration of every proxy, "+
			"private keys included: give it a certificate with --xds-tls-cert and --xds-tls-key, "+
			"and the authority of the Envoys' certificates with --xds-tls-client-ca "+
			"(gatehouse pki makes them), or allow it with --insecure-xds", p.flag, p.given)}
	}
	log.Warn("tokens reach the xds port unencrypted, and so do private keys: give --xds-tls-cert",
		append(at, "by", "token")...)
	return false, nil
}

// ends returns when the files of the port end.
func (x *xdsPort) ends() []expiry.End {
	if x.tls == nil {
		return nil
	}
	return x.tls.Ends()
}

// server returns the gRPC server of the port.
func (x *xdsPort) server(ads *server.Server) *grpc.Server {
	return ads.GRPC(grpc.Creds(xdsauth.NewCredentials(x.tls, x.own)))
}

// run serves the port and its socket until g stops, and watches the files until ctx ends.
func (x *xdsPort) run(ctx context.Context, group *errgroup.Group, g *grpc.Server) {
	for _, l := range []net.Listener{xdsauth.Bound(x.listener, x.refusals, nil), x.socket} {
		if l == nil {
			continue
		}
		group.Go(func() error {
			if err := g.Serve(l); err != nil {
				return fmt.Errorf("serving xDS on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error { return x.tokens.Run(ctx) })
	if x.tls != nil {
		group.Go(func() error { return x.tls.Run(ctx) })
	}
}

// close may be called after run.
func (x *xdsPort) close() {
	if x == nil {
		return
	}
	for _, l := range []net.Listener{x.listener, x.socket} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// ownListener is the socket of the own Envoy. Its connections have distinct addresses.
type ownListener struct {
	net.Listener
	count atomic.Int64
}

func listenOwn(ctx context.Context, path string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("the xDS server cannot listen on %s: %w", path, err)
	}
	// A client that can open it counts as the own Envoy. The directory is already closed to others.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &ownListener{Listener: l}, nil
}

// Accept implements net.Listener.
func (l *ownListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return ownConn{conn, ownAddr("socket:" + strconv.FormatInt(l.count.Add(1), 10))}, nil
}

type ownConn struct {
	net.Conn
	addr ownAddr
}

// RemoteAddr implements net.Conn.
func (c ownConn) RemoteAddr() net.Addr { return c.addr }

type ownAddr string

// Network implements net.Addr.
func (ownAddr) Network() string { return "unix" }

// String implements net.Addr.
func (a ownAddr) String() string { return string(a) }
