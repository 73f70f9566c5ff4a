package xdsauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// Credentials are those of the connections to a port. TCP connections use TLS, if there are files for it. Connections
// on a Unix socket do not: a client that may open the socket stands for one proxy.
type Credentials struct {
	credentials.TransportCredentials // nil: it has the methods that only clients call

	tls   *TLS
	local string
}

// NewCredentials returns credentials. t is nil for a port without TLS; local is the proxy of Unix sockets.
func NewCredentials(t *TLS, local string) *Credentials { return &Credentials{tls: t, local: local} }

// ServerHandshake implements credentials.TransportCredentials.
func (c *Credentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	switch {
	case raw.LocalAddr().Network() == "unix":
		return raw, socketInfo{proxy: c.local}, nil
	case c.tls == nil:
		return raw, plainInfo{raw}, nil
	}
	return c.tls.handshake(raw)
}

// socketInfo describes a connection on a Unix socket.
type socketInfo struct{ proxy string }

// AuthType implements credentials.AuthInfo.
func (socketInfo) AuthType() string { return "socket" }

//nolint:unparam // as tlsInfo has it
func (i socketInfo) identity(context.Context) (*proof, error) {
	return &proof{Name: "socket of this program", Proxies: []string{i.proxy}}, nil
}

// tlsInfo describes a connection with TLS.
type tlsInfo struct {
	tls   *TLS
	conn  *tls.Conn
	shown []*x509.Certificate // the client's certificates, its own first
}

// refusedTime is how long a connection with a refused certificate stays open, so that the client receives the reason.
const refusedTime = 250 * time.Millisecond

// AuthType implements credentials.AuthInfo.
func (tlsInfo) AuthType() string { return "tls" }

func (i tlsInfo) identity(ctx context.Context) (*proof, error) {
	if len(i.shown) == 0 {
		return nil, nil //nolint:nilnil // no proof is no error
	}
	p, err := i.tls.prove(ctx, i.shown, i.hangUp)
	if err != nil {
		i.hangUp()
	}
	return p, err
}

// hangUp closes the connection soon. An Envoy opens its next stream on its existing connection: to present a
// certificate that it has received meanwhile, it needs a new one.
func (i tlsInfo) hangUp() { time.AfterFunc(refusedTime, func() { _ = i.conn.Close() }) }

// handshake does the TLS handshake of a new connection, which has a deadline. A client without a certificate may have a
// token.
func (t *TLS) handshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn := tls.Server(raw, t.config())
	err := conn.HandshakeContext(context.Background())
	state := conn.ConnectionState()
	// Without ALPN, the client may speak another protocol to which an attacker has redirected it (RFC 9113, 3.2).
	if err == nil && state.NegotiatedProtocol != "h2" {
		err = errors.New("the client does not ask for HTTP/2 with ALPN (h2)")
	}
	if err != nil {
		t.recordFailure(raw.RemoteAddr().String(), err)
		return nil, nil, err
	}
	return conn, tlsInfo{t, conn, state.PeerCertificates}, nil
}

// config returns the configuration for one connection, with the current files.
func (t *TLS) config() *tls.Config {
	m := t.current()
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.pair}, NextProtos: []string{"h2"}, Time: t.opts.Now,
		// A resumed session would use the certificate of an old handshake.
		SessionTicketsDisabled: true,
	}
	if m.clients != nil {
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, m.clients
		c.VerifyConnection = func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return nil
			}
			_, err := m.verify(state.PeerCertificates, t.opts.Now())
			return err
		}
	}
	return c
}

// recordFailure records why a handshake failed. A client that closes without a message is not recorded: probes of a
// port do that.
func (t *TLS) recordFailure(address string, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		return
	}
	refusal := &server.Refusal{}
	switch bad, unverified := errors.AsType[*tls.CertificateVerificationError](err); {
	case errors.As(err, &refusal):
	case unverified:
		refusal = refuseCertificate(bad.UnverifiedCertificates[0], bad.Err)
	default:
		refusal = &server.Refusal{Reason: server.ReasonHandshake, Message: explainFailure(err)}
	}
	t.opts.Refusals.Record(context.Background(), address, refusal)
}

// explainFailure says what was wrong with a handshake.
func explainFailure(err error) string {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return "the client does not speak TLS: it needs a bootstrap for TLS (see gatehouse bootstrap --help)"
	}
	return "the handshake failed: " + err.Error()
}
