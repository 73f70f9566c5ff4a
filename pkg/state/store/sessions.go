package store

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Session lets a browser call the API for a while, with the rights of a token or of a user. It has two halves, and only
// their hashes are stored.
type Session struct {
	// Hash is that of the half in the cookie, Header that of the half in the header.
	Hash, Header [sha256.Size]byte
	// Token is the hash of the token, or HashUser of the user. A session ends with its token.
	Token [sha256.Size]byte
	// User is who has signed in with an identity provider; the zero value for a session of a token.
	User User
	// CreateTS and EndTS are when it began, and when it ends at the latest.
	CreateTS, EndTS model.Time
}

// User is a user of an identity provider.
type User struct {
	// Issuer is the provider, Actor the name of the user in the history, and Group the group that gives the rights.
	Issuer, Actor, Group string
}

// userPrefix begins the actor of each user: no token has a colon in its name.
const userPrefix = "oidc:"

// UserActor returns the actor of a user: the subject, which the provider gives to nobody else, and before it the name,
// which users may choose. Neither contains spaces.
func UserActor(subject, name string) string {
	if name == "" || name == subject {
		return userPrefix + subject
	}
	return userPrefix + name + " (" + subject + ")"
}

// IsUserActor reports whether an actor is a user.
func IsUserActor(actor string) bool { return strings.HasPrefix(actor, userPrefix) }

// HashUser returns what sessions have in place of the hash of a token. No token is a text with spaces.
func HashUser(issuer, subject string) [sha256.Size]byte {
	return HashToken("user " + issuer + " " + subject)
}

// Sessions keeps the sessions of browsers. Like tokens, they are not part of the configuration.
type Sessions interface {
	// CreateSession stores a session. It drops those that have ended by CreateTS, and the oldest of the same token or
	// user if more than keep would be left.
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
