package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// The roles of a token (rest-api.md, "Authentication").
const (
	// RoleAdmin may do everything.
	RoleAdmin = "admin"
	// RoleEditor may read, and change what is its team's.
	RoleEditor = "editor"
	// RoleViewer may read.
	RoleViewer = "viewer"
)

// Token lets its holder call the API. It is not part of the configuration: it has no
// revision, and a rollback does not change it.
type Token struct {
	// Name is also the actor of the holder's writes.
	Name string
	// Role is RoleAdmin, RoleEditor or RoleViewer.
	Role string
	// Team is what a token with RoleEditor may change; others have none.
	Team Team
	// Hash is HashToken of the token itself, which is not stored.
	Hash [sha256.Size]byte
	// CreateTS is when it was created.
	CreateTS model.Time
	// LastUsedTS is when it was last used, to about a minute; zero means never.
	LastUsedTS model.Time
}

// Tokens keeps the tokens of the API.
type Tokens interface {
	// CreateToken stores a new, valid token. A taken name is an Exists error.
	CreateToken(ctx context.Context, t Token) error
	// Tokens lists all of them by name.
	Tokens(ctx context.Context) ([]Token, error)
	// TokenByHash returns the token with that hash, or a NotFound error.
	TokenByHash(ctx context.Context, hash [sha256.Size]byte) (Token, error)
	// TokenByName returns the token with that name, or a NotFound error.
	TokenByName(ctx context.Context, name string) (Token, error)
	// DeleteToken deletes a token, or returns a NotFound error. With keepAdmin,
	// deleting the last token of an admin is a Conflict error.
	DeleteToken(ctx context.Context, name string, keepAdmin bool) error
	// TouchToken records that the token was used. An unknown name, and a time before
	// the recorded one, change nothing.
	TouchToken(ctx context.Context, name string, at time.Time) error
	// HasTokens reports whether there are any.
	HasTokens(ctx context.Context) (bool, error)
}

const (
	// The prefixes show scanners for leaked secrets, and readers, what a token is for.
	tokenPrefix      = "gh_"
	proxyTokenPrefix = "ghx_"
	tokenBytes       = 32
)

// MakeToken returns the text of a new token: 256 random bits.
func MakeToken() string { return makeToken(tokenPrefix) }

// IsToken reports whether MakeToken could have returned the text.
func IsToken(text string) bool { return isToken(tokenPrefix, text) }

func makeToken(prefix string) string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // it never fails; see its documentation
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

func isToken(prefix, text string) bool {
	body, ok := strings.CutPrefix(text, prefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(body)
	return ok && err == nil && len(b) == tokenBytes
}

// HashToken returns what is stored of a token. A fast hash is enough for 256 random
// bits: they cannot be guessed.
func HashToken(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// reservedActors returns names that would make a token's holder look like somebody else
// in the history: the admin token of the settings, a caller of an API without tokens,
// or the program itself.
func reservedActors() []string { return []string{"admin", "api", "local", "standalone"} }

// Validate returns what is wrong with name and role, by the fields of
// POST /token.
func (t Token) Validate() []model.FieldError {
	errs := validateTokenName(t.Name)
	if slices.Contains(reservedActors(), strings.ToLower(t.Name)) {
		errs = append(errs, model.FieldError{Field: "Token_name", Message: fmt.Sprintf("%q is the name of another actor in the history; choose another name", t.Name)})
	}
	switch t.Role {
	case RoleEditor:
		errs = append(errs, t.Team.Validate()...)
	case RoleAdmin, RoleViewer:
		if len(t.Team.Tags)+len(t.Team.Hosts)+len(t.Team.Ports)+t.Team.MaxObjects != 0 {
			errs = append(errs, model.FieldError{Field: "Token_role", Message: fmt.Sprintf("must be editor for a token with tags, hosts, ports or a number of objects, not %s", t.Role)})
		}
	case "":
		errs = append(errs, model.FieldError{Field: "Token_role", Message: "is required: admin, editor or viewer"})
	default:
		errs = append(errs, model.FieldError{Field: "Token_role", Message: fmt.Sprintf("%q is not one of admin, editor, viewer", t.Role)})
	}
	return errs
}

// validateTokenName returns what is wrong with the name of a token.
func validateTokenName(name string) (errs []model.FieldError) {
	// Names of routes follow the plain rule of rest-api.md ("Names").
	for _, e := range (&model.Route{Name: name, Prefix: "/"}).Validate() {
		errs = append(errs, model.FieldError{Field: "Token_name", Message: e.Message})
	}
	return errs
}
