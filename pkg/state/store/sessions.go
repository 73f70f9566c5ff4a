package store

import (
	"context"
	"crypto/sha256"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Session lets a browser call the API for a while, with the rights of a token. It has two halves, and only their
// hashes are stored.
type Session struct {
	// Hash is that of the half in the cookie, Header that of the half in the header.
	Hash, Header [sha256.Size]byte
	// Token is the hash of the token. A session ends with its token.
	Token [sha256.Size]byte
	// CreateTS and EndTS are when it began, and when it ends at the latest.
	CreateTS, EndTS model.Time
}

// Sessions keeps the sessions of browsers. Like tokens, they are not part of the configuration.
type Sessions interface {
	// CreateSession stores a session. It drops those that have ended by CreateTS, and the oldest of the same token
	// if more than keep would be left.
	CreateSession(ctx context.Context, s Session, keep int) error
	// Session returns the session with that hash, or a NotFound error. It may have ended.
	Session(ctx context.Context, hash [sha256.Size]byte) (Session, error)
	// DeleteSession deletes the session with that hash, if there is one.
	DeleteSession(ctx context.Context, hash [sha256.Size]byte) error
}

const sessionPrefix = "ghs_"

// MakeSessionHalf returns the text of a half of a session: 256 random bits.
func MakeSessionHalf() string { return makeToken(sessionPrefix) }

// IsSessionHalf reports whether MakeSessionHalf could have returned the text.
func IsSessionHalf(text string) bool { return isToken(sessionPrefix, text) }
