package testkit

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ClientHello is the first message of a TLS handshake, as a test builds it byte by byte:
// with content that TLS libraries no longer send, or never did.
type ClientHello struct {
	// Version is the version in the message itself: 0x0300 is SSL 3.0, 0x0303 TLS 1.2 and
	// everything later, which Versions lists (extension supported_versions).
	Version  uint16
	Versions []uint16
	// Ciphers, Groups, Compressions and ALPN are the client's capabilities. Without Groups
	// and ALPN their extensions are left out; without Compressions only "none" is offered.
	Ciphers, Groups []uint16
	Compressions    []byte
	ALPN            []string
	// ServerNames are the entries of the extension server_name; empty leaves it out.
	ServerNames []string
	// Extensions are additional extensions, by type, each with its content.
	Extensions map[uint16][]byte
}

// ServerHello is the answer of a server.
type ServerHello struct {
	// Alert is the description in an alert, such as 40 for handshake_failure; 0 if the
	// server accepts. Closed says that it closed the connection without an alert.
	Alert  byte
	Closed bool
	// Version and Cipher are the server's choice, and Group its choice for the key
	// exchange; Retry says that it requests a key of that group (TLS 1.3).
	Version, Cipher, Group uint16
	Retry                  bool
	Compression            byte
	// SessionID is the length of the session's ID, by which TLS 1.2 could resume it.
	SessionID  int
	Extensions map[uint16][]byte
	// Leaf is the server's certificate (TLS 1.2; later ones are encrypted).
	Leaf *x509.Certificate
}

// Accepted reports whether the handshake would continue.
func (s ServerHello) Accepted() bool { return s.Alert == 0 && !s.Closed }

// Types of extensions (IANA, TLS ExtensionType Values).
const (
	extServerName        = 0
	extGroups            = 10
	extPointFormats      = 11
	extSignatures        = 13
	extALPN              = 16
	extSupportedVersions = 43
	extKeyShare          = 51
)

// Send opens a connection, sends the message and reads the unencrypted part of the answer.
func (h ClientHello) Send(ctx context.Context, addr string) (ServerHello, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return ServerHello{}, fmt.Errorf("sending a ClientHello: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return ServerHello{}, fmt.Errorf("sending a ClientHello: %w", err)
	}
	message := h.bytes()
	for len(message) > 0 {
		part := message[:min(len(message), 1<<14)]
		message = message[len(part):]
		record := binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(len(part))) //nolint:gosec // at most 1<<14
		if h.Version == 0x0300 {
			record[2] = 0
		}
		if _, err := conn.Write(append(record, part...)); err != nil {
			return ServerHello{Closed: true}, nil //nolint:nilerr // before it has read all of it
		}
	}
	return readServerHello(bufio.NewReader(conn))
}

func (h ClientHello) bytes() []byte {
	body := binary.BigEndian.AppendUint16(nil, h.Version)
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	body = append(body, random...)
	body = append(body, 0) // no session to resume
	body = append(body, sized(2, uint16s(h.Ciphers))...)
	if h.Compressions == nil {
		h.Compressions = []byte{0}
	}
	body = append(body, sized(1, h.Compressions)...)
	var extensions []byte
	add := func(kind uint16, content []byte) {
		extensions = append(binary.BigEndian.AppendUint16(extensions, kind), sized(2, content)...)
	}
	if h.ServerNames != nil {
		var names []byte
		for _, n := range h.ServerNames {
			names = append(append(names, 0), sized(2, []byte(n))...)
		}
		add(extServerName, sized(2, names))
	}
	if h.Groups != nil {
		add(extGroups, sized(2, uint16s(h.Groups)))
		add(extPointFormats, []byte{1, 0})
	}
	if h.ALPN != nil {
		var protocols []byte
		for _, p := range h.ALPN {
			protocols = append(protocols, sized(1, []byte(p))...)
		}
		add(extALPN, sized(2, protocols))
	}
	if h.Versions != nil {
		add(extSupportedVersions, sized(1, uint16s(h.Versions)))
		add(extKeyShare, sized(2, nil)) // the server chooses one
	}
	if h.Version >= 0x0303 {
		// ECDSA with P-256, 384 and 521, RSA-PSS, RSA, Ed25519, and SHA-1 with both.
		add(extSignatures, sized(2, uint16s([]uint16{
			0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0807, 0x0201, 0x0203,
		})))
	}
	for kind, content := range h.Extensions {
		add(kind, content)
	}
	if len(extensions) > 0 {
		body = append(body, sized(2, extensions)...)
	}
	return append([]byte{1}, sized(3, body)...)
}

// sized prefixes a content with its length, in a number of bytes.
func sized(bytes int, content []byte) []byte {
	length := binary.BigEndian.AppendUint32(nil, uint32(len(content))) //nolint:gosec // a few kilobytes
	return append(length[4-bytes:], content...)
}

func uint16s(list []uint16) (out []byte) {
	for _, v := range list {
		out = binary.BigEndian.AppendUint16(out, v)
	}
	return out
}

// errShort means that an answer ends within a message.
var errShort = errors.New("the server's answer ends within a message")

func readServerHello(r io.Reader) (ServerHello, error) {
	var answer ServerHello
	var stream []byte
	for {
		header := make([]byte, 5)
		if _, err := io.ReadFull(r, header); err != nil {
			answer.Closed = answer.Version == 0
			return answer, nil //nolint:nilerr // the end is an answer
		}
		content := make([]byte, binary.BigEndian.Uint16(header[3:]))
		if _, err := io.ReadFull(r, content); err != nil {
			return answer, errShort
		}
		if header[0] == 21 {
			answer.Alert = content[len(content)-1]
			return answer, nil
		}
		stream = append(stream, content...)
		for len(stream) >= 4 {
			length := int(stream[1])<<16 | int(stream[2])<<8 | int(stream[3])
			if len(stream) < 4+length {
				break
			}
			done, err := answer.message(stream[0], stream[4:4+length])
			if done || err != nil {
				return answer, err
			}
			stream = stream[4+length:]
		}
	}
}

// The first bytes of Random in a ServerHello that is a HelloRetryRequest (RFC 8446 section
// 4.1.3).
const retryRandom = "\xcf\x21\xad\x74\xe5\x9a\x61\x11"

// message reads a handshake message; done says that the rest is encrypted.
func (s *ServerHello) message(kind byte, body []byte) (done bool, err error) {
	switch {
	case kind == 12 && len(body) > 3 && body[0] == 3: // ServerKeyExchange, a named curve
		s.Group = binary.BigEndian.Uint16(body[1:])
	case kind == 11 && len(body) > 6: // Certificate
		length := int(body[3])<<16 | int(body[4])<<8 | int(body[5])
		if len(body) < 6+length {
			return true, errShort
		}
		s.Leaf, err = x509.ParseCertificate(body[6 : 6+length])
		return err != nil, err
	case kind == 14: // ServerHelloDone
		return true, nil
	case kind == 2:
		if len(body) < 38 {
			return true, errShort
		}
		s.Version = binary.BigEndian.Uint16(body)
		s.Retry = string(body[2:2+len(retryRandom)]) == retryRandom
		s.SessionID = int(body[34])
		rest := body[35:]
		if len(rest) < s.SessionID+3 {
			return true, errShort
		}
		rest = rest[s.SessionID:]
		s.Cipher, s.Compression = binary.BigEndian.Uint16(rest), rest[2]
		s.Extensions = map[uint16][]byte{}
		if rest = rest[3:]; len(rest) > 2 {
			rest = rest[2:]
		}
		for len(rest) >= 4 {
			length := int(binary.BigEndian.Uint16(rest[2:]))
			if len(rest) < 4+length {
				return true, errShort
			}
			s.Extensions[binary.BigEndian.Uint16(rest)] = rest[4 : 4+length]
			rest = rest[4+length:]
		}
		if v := s.Extensions[extSupportedVersions]; len(v) == 2 {
			s.Version = binary.BigEndian.Uint16(v)
		}
		if v := s.Extensions[extKeyShare]; len(v) >= 2 {
			s.Group = binary.BigEndian.Uint16(v)
		}
		return s.Version > 0x0303, nil // the rest is encrypted
	}
	return false, nil
}
