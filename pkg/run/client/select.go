package client

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// DefaultServer is called when nothing names another.
const DefaultServer = "http://127.0.0.1:1323"

// The environment variables that choose the server.
const (
	ServerVariable    = "GATEHOUSE_SERVER"
	TokenFileVariable = "GATEHOUSE_TOKEN_FILE"
	CAFileVariable    = "GATEHOUSE_CA_FILE"
	ContextVariable   = "GATEHOUSE_CONTEXT"
)

// Selection is what says which server to call; empty fields say nothing.
type Selection struct{ Server, TokenFile, CAFile, Context string }

// Resolve finds the server, the file of its token and that of its authorities:
// flags before the environment, the environment before the current context, and
// http://127.0.0.1:1323 in the end. The token and the authorities of a context
// are for the server of that context only.
func Resolve(flags Selection, getenv func(string) string, contexts Contexts) (Selection, error) {
	env := Selection{
		Server: getenv(ServerVariable), TokenFile: getenv(TokenFileVariable),
		CAFile: getenv(CAFileVariable), Context: getenv(ContextVariable),
	}
	var s Selection
	for _, level := range []Selection{flags, env, {Context: contexts.Current}} {
		s.TokenFile = cmp.Or(s.TokenFile, level.TokenFile)
		s.CAFile = cmp.Or(s.CAFile, level.CAFile)
		s.Server = cmp.Or(s.Server, level.Server)
		if s.Server != "" || level.Context == "" {
			continue
		}
		context, err := contexts.Find(level.Context)
		if err != nil {
			return Selection{}, err
		}
		s.Context, s.Server = context.Name, context.Server
		s.TokenFile = cmp.Or(s.TokenFile, context.TokenFile)
		s.CAFile = cmp.Or(s.CAFile, context.CAFile)
	}
	s.Server = cmp.Or(s.Server, DefaultServer)
	return s, nil
}

// ReadAuthorities reads the certificates of authorities from a file in PEM; ""
// names none, which is nil.
func ReadAuthorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the authority's certificate: %s has none in PEM (-----BEGIN CERTIFICATE-----)", path)
	}
	return pool, nil
}

// ReadToken reads a token from a file, which holds one line; "" names none.
func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", errors.New("reading the token: " + path + " is empty")
	}
	return token, nil
}
