package rest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// A session has two halves (ADR 0131): no script can read the cookie, and no other port or site is sent the header.
const (
	sessionPath   = "/ui/session"
	sessionCookie = "gatehouse_session"
	sessionHeader = "Gatehouse-Session"
	sessionTime   = 12 * time.Hour
	// sessionsPerToken is how many browsers may be signed in with a token, or as a user.
	sessionsPerToken = 20
)

// The states of a browser.
const (
	stateOpen      = "open" // no token exists
	stateSignedIn  = "signed_in"
	stateSignedOut = "signed_out"
)

// shownSession says who uses the console.
type shownSession struct {
	State string   `json:"state"`
	Actor string   `json:"actor,omitempty"`
	Role  string   `json:"role,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Ends is absent for an API without tokens.
	Ends *model.Time `json:"end_ts,omitempty"`
	// Elsewhere says where to change the configuration, if not with this API.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Provider is the name of the identity provider that people may sign in with, for those who are signed out.
	Provider string `json:"provider,omitempty"`
	// Header is the half that the page sends; only the answer to the sign-in has it.
	Header string `json:"header,omitempty"`
}

// addSession registers how a browser signs in and out. Reading who is signed in is a file of the console for the
// router, which has no place beside a wildcard.
func (s *server) addSession() {
	s.post(sessionPath, s.ownOrigin(s.signIn))
	s.delete(sessionPath, s.ownOrigin(s.signOut))
}

// ownOrigin refuses calls of pages of other origins, as for every write.
func (s *server) ownOrigin(h handler) handler {
	return func(c *gin.Context) error {
		if err := noQuery(c); err != nil {
			return err
		}
		if s.guard == nil {
			s.noRoute(c)
			return nil
		}
		if err := s.guard.checkOrigin(c); err != nil {
			return err
		}
		return h(c)
	}
}

// signInForm is the body of a sign-in.
type signInForm struct{ token string }

func (f signInForm) Validate() []model.FieldError {
	if f.token == "" {
		return []model.FieldError{{Field: "token", Message: "is required"}}
	}
	return nil
}

func (s *server) signIn(c *gin.Context) error {
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	var f signInForm
	if err := invalidFields(bindToken(sent, []tokenField{textField("token", &f.token)}, &f)); err != nil {
		return err
	}
	ctx := c.Request.Context()
	id, err := s.guard.tokenHolder(ctx, []string{"Bearer " + f.token})
	if model.IsKind(err, model.NotFound) {
		return s.guard.refuseToken(c)
	}
	if err != nil {
		return err
	}
	return s.beginSession(c, id, store.Session{Token: store.HashToken(strings.TrimSpace(f.token))}, sessionTime)
}

// beginSession gives a browser a session, which ends after a time.
func (s *server) beginSession(c *gin.Context, id identity, session store.Session, lasts time.Duration) error {
	if err := s.guard.endSession(c); err != nil { // the one before, of the same browser
		return err
	}
	now := s.now()
	cookie, header := store.MakeSessionHalf(), store.MakeSessionHalf()
	session.Hash, session.Header = store.HashToken(cookie), store.HashToken(header)
	session.CreateTS, session.EndTS = model.At(now), model.At(now.Add(lasts))
	if err := s.guard.sessions.CreateSession(c.Request.Context(), session, sessionsPerToken); err != nil {
		return err
	}
	c.Set(identityKey{}, id)
	setSessionCookie(c, cookie, lasts)
	shown := s.showSession(stateSignedIn, id, session)
	shown.Header = header
	c.Header("Cache-Control", "no-store")
	s.writeJSON(c, http.StatusCreated, "application/json", shown)
	return nil
}

func (s *server) signOut(c *gin.Context) error {
	if err := s.guard.endSession(c); err != nil {
		return err
	}
	setSessionCookie(c, "", -time.Second)
	c.Header("Cache-Control", "no-store")
	s.writeJSON(c, http.StatusOK, "application/json", s.showSession(stateSignedOut, identity{}, store.Session{}))
	return nil
}

// readSession says who uses the console, also to nobody.
func (s *server) readSession(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	if s.guard == nil {
		shown := s.showSession(stateOpen, identity{actor: actorAPI, role: store.RoleAdmin}, store.Session{})
		s.writeJSON(c, http.StatusOK, "application/json", shown)
		return nil
	}
	ctx := c.Request.Context()
	id, session, err := s.guard.sessionHolder(ctx, c.Request)
	state := stateSignedIn
	if model.IsKind(err, model.NotFound) {
		if id, err = s.guard.withoutToken(ctx); err == nil {
			state = stateOpen
			if !id.open {
				state = stateSignedOut
			}
		}
	}
	if err != nil {
		return err
	}
	s.writeJSON(c, http.StatusOK, "application/json", s.showSession(state, id, session))
	return nil
}

func (s *server) showSession(state string, id identity, session store.Session) shownSession {
	shown := shownSession{State: state, Actor: id.actor, Role: id.role, Tags: id.team.Tags, Ends: lastUsed(session.EndTS)}
	if state == stateSignedOut && s.guard.signIn != nil {
		shown.Provider = s.guard.signIn.Name
	}
	if s.elsewhere != nil && state != stateSignedOut {
		shown.Elsewhere = s.elsewhere(model.Key{})
	}
	return shown
}

// setSessionCookie sets the half that no script can read. It is for all paths: where the API is below one, the server
// does not know it.
func setSessionCookie(c *gin.Context, value string, left time.Duration) {
	secure := c.Request.TLS != nil || strings.EqualFold(c.GetHeader("X-Forwarded-Proto"), "https")
	http.SetCookie(c.Writer, &http.Cookie{ //nolint:gosec // without TLS, the console works over plain HTTP
		Name: sessionCookie, Value: value, Path: "/", MaxAge: int(left / time.Second), Secure: secure,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// sessionHolder returns the holder of the session whose halves the request has, or a NotFound error.
func (g *guard) sessionHolder(ctx context.Context, r *http.Request) (identity, store.Session, error) {
	unknown := &model.Error{Kind: model.NotFound, Message: "the session does not exist"}
	cookie, header := halvesOf(r)
	if g.sessions == nil || !store.IsSessionHalf(cookie) || !store.IsSessionHalf(header) {
		return identity{}, store.Session{}, unknown
	}
	session, err := g.sessions.Session(ctx, store.HashToken(cookie))
	if err != nil {
		return identity{}, store.Session{}, err
	}
	sent := store.HashToken(header)
	if subtle.ConstantTimeCompare(sent[:], session.Header[:]) != 1 || !g.now().Before(session.EndTS.Time) {
		return identity{}, store.Session{}, unknown
	}
	var id identity
	if session.User == (store.User{}) {
		id, err = g.holderOf(ctx, session.Token)
	} else {
		id, err = g.userHolder(ctx, session.User)
	}
	if err != nil {
		return identity{}, store.Session{}, err
	}
	return id, session, nil
}

// halvesOf returns both halves, empty where the request has none.
func halvesOf(r *http.Request) (cookie, header string) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		cookie = c.Value
	}
	return cookie, r.Header.Get(sessionHeader)
}

// endSession ends the session whose halves the request has, if any.
func (g *guard) endSession(c *gin.Context) error {
	id, session, err := g.sessionHolder(c.Request.Context(), c.Request)
	if model.IsKind(err, model.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Set(identityKey{}, id)
	return g.sessions.DeleteSession(c.Request.Context(), session.Hash)
}

// isAdminToken reports whether a hash is that of the admin token of the settings.
func (g *guard) isAdminToken(hash [sha256.Size]byte) bool {
	return g.admin != nil && subtle.ConstantTimeCompare(hash[:], g.admin[:]) == 1
}

// holderOf returns the holder of the token with a hash, or a NotFound error.
func (g *guard) holderOf(ctx context.Context, hash [sha256.Size]byte) (identity, error) {
	if g.isAdminToken(hash) {
		return identity{actor: actorAdmin, role: store.RoleAdmin}, nil
	}
	// The database compares hashes: what its time tells of one says nothing
	// about a token that is not known already.
	t, err := g.tokens.TokenByHash(ctx, hash)
	if err != nil {
		return identity{}, err
	}
	if subtle.ConstantTimeCompare(hash[:], t.Hash[:]) != 1 {
		return identity{}, &model.Error{Kind: model.NotFound, Message: "the token does not exist"}
	}
	g.noteUse(ctx, t)
	return identity{actor: t.Name, role: t.Role, team: t.Team}, nil
}
