package client

import (
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
	ContextVariable   = "GATEHOUSE_CONTEXT"
)

// Selection is what says which server to call; empty fields say nothing.
type Selection struct{ Server, TokenFile, Context string }

// Resolve finds the server and the file of its token: flags before the
// environment, the environment before the current context, and
// http://127.0.0.1:1323 in the end. The token of a context goes to the server
// of that context only.
func Resolve(flags Selection, getenv func(string) string, contexts Contexts) (server, tokenFile string, err error) {
	env := Selection{getenv(ServerVariable), getenv(TokenFileVariable), getenv(ContextVariable)}
	for _, level := range []Selection{flags, env, {Context: contexts.Current}} {
		if tokenFile == "" {
			tokenFile = level.TokenFile
		}
		if server == "" {
			server = level.Server
		}
		if server != "" || level.Context == "" {
			continue
		}
		context, err := contexts.Find(level.Context)
		if err != nil {
			return "", "", err
		}
		server = context.Server
		if tokenFile == "" {
			tokenFile = context.TokenFile
		}
	}
	if server == "" {
		server = DefaultServer
	}
	return server, tokenFile, nil
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
