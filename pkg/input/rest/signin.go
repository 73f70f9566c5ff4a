package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/perclient"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/signin"
)

// SignIn lets users of an identity provider sign in to the console (ADR 0145).
type SignIn struct {
	Provider *signin.Provider
	// Name is what people call the provider.
	Name string
	// Groups have the rights of users: those of the first group that a user is in.
	Groups []GroupRights
	// Session is how long a session lasts.
	Session time.Duration
}

// GroupRights are what the users of a group may do.
type GroupRights struct {
	Group string
	// Role is store.RoleAdmin, store.RoleEditor or store.RoleViewer.
	Role string
	// Token names the token whose team an editor belongs to.
	Token string
}

// The paths of a sign-in with an identity provider.
const (
	beginPath = "/ui/oidc"
	endPath   = "/ui/oidc/session"
)

// How many sign-ins an address may begin and end: each makes the server ask the provider. An address may be that of
// everybody's proxy.
const (
	signInBurst    = 60
	signInInterval = time.Second
)

// maxAnswer bounds each text of a sign-in, in bytes.
const maxAnswer = 8 << 10

func (s *server) addSignIn() {
	s.post(beginPath, s.ownOrigin(s.withProvider(s.beginSignIn)))
	s.post(endPath, s.ownOrigin(s.withProvider(s.endSignIn)))
}

// withProvider answers 404 without a provider, and bounds the calls of an address.
func (s *server) withProvider(h handler) handler {
	return func(c *gin.Context) error {
		if s.guard.signIn == nil {
			s.noRoute(c)
			return nil
		}
		if !s.guard.signIns.Allow(perclient.Prefix(c.Request.RemoteAddr), s.now()) {
			c.Header("Retry-After", "1")
			return refusal(http.StatusTooManyRequests, "too_many_requests", "Too many requests of this kind at once",
				"too many sign-ins came from this address; wait a second, and sign in again")
		}
		c.Header("Cache-Control", "no-store")
		return h(c)
	}
}

// signInFields are the texts of a sign-in that a call has.
type signInFields map[string]*string

// Validate implements the check of bindToken: all but iss are required.
func (f signInFields) Validate() (errs []model.FieldError) {
	for name, text := range f {
		switch {
		case *text == "" && name != "iss":
			errs = append(errs, model.FieldError{Field: name, Message: "is required"})
		case len(*text) > maxAnswer:
			errs = append(errs, model.FieldError{Field: name, Message: fmt.Sprintf("is longer than %d bytes", maxAnswer)})
		}
	}
	slices.SortFunc(errs, func(a, b model.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func readSignIn(c *gin.Context, f signInFields) error {
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	var fields []tokenField
	for name, text := range f {
		fields = append(fields, textField(name, text))
	}
	slices.SortFunc(fields, func(a, b tokenField) int { return strings.Compare(a.name, b.name) })
	return invalidFields(bindToken(sent, fields, f))
}

// beginSignIn answers with the page of the provider.
func (s *server) beginSignIn(c *gin.Context) error {
	var page string
	if err := readSignIn(c, signInFields{"page": &page}); err != nil {
		return err
	}
	if why := signin.CheckPage(page, c.GetHeader("Origin")); why != "" {
		return invalidFields([]model.FieldError{{Field: "page", Message: why}})
	}
	begun, err := s.guard.signIn.Provider.Begin(c.Request.Context(), page)
	if err != nil {
		return s.refuseSignIn(c, err)
	}
	s.writeJSON(c, http.StatusOK, "application/json", struct {
		URL    string `json:"url"`
		State  string `json:"state"`
		SignIn string `json:"sign_in"`
	}{begun.URL, begun.State, begun.SignIn})
	return nil
}

// endSignIn begins a session of the user that the provider names.
func (s *server) endSignIn(c *gin.Context) error {
	var got signin.Answer
	err := readSignIn(c, signInFields{"code": &got.Code, "state": &got.State, "sign_in": &got.SignIn, "iss": &got.Issuer})
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	u, err := s.guard.signIn.Provider.End(ctx, got)
	if err != nil {
		return s.refuseSignIn(c, err)
	}
	user := store.User{Issuer: s.guard.signIn.Provider.Issuer(), Actor: store.UserActor(u.Subject, u.Name)}
	c.Set(identityKey{}, identity{actor: user.Actor}) // the log names who is refused, too
	rights := s.guard.signIn.rightsOf(u.Groups)
	if rights == nil {
		return refusal(http.StatusForbidden, "no_rights", "None of your groups may use the console",
			user.Actor+" is "+groupsText(u.Groups)+", and none that may use the console; ask whoever runs this gateway for a group of --console-oidc-groups")
	}
	user.Group = rights.Group
	id, err := s.guard.userHolder(ctx, user)
	if model.IsKind(err, model.NotFound) {
		return refusal(http.StatusForbidden, "no_rights", "None of your groups may use the console",
			`the group "`+rights.Group+`" has the rights of the token "`+rights.Token+`", which does not exist or does not have the role editor; ask an admin to create it`)
	}
	if err != nil {
		return err
	}
	return s.beginSession(c, id, store.Session{Token: store.HashUser(user.Issuer, u.Subject), User: user}, s.guard.signIn.Session)
}

// refuseSignIn answers a sign-in that has failed.
func (s *server) refuseSignIn(c *gin.Context, err error) error {
	if why, ok := errors.AsType[signin.Refused](err); ok {
		s.log.Log(c.Request.Context(), s.guard.refusalLevel(c, identity{}), "sign-in refused", "reason", string(why))
		return refusal(http.StatusForbidden, "sign_in_refused", "The sign-in is refused", string(why))
	}
	if why, ok := errors.AsType[signin.Unavailable](err); ok {
		return newProblem(http.StatusServiceUnavailable, "unavailable", string(why))
	}
	return err
}

// groupsText says which groups somebody is in.
func groupsText(groups []string) string {
	const most = 10
	var list []string
	for _, g := range groups[:min(len(groups), most)] {
		list = append(list, fmt.Sprintf("%q", shorten(g)))
	}
	switch {
	case len(groups) == 0:
		return "in no group that the provider names"
	case len(groups) > most:
		list = append(list, fmt.Sprintf("%d more", len(groups)-most))
	}
	return "in " + strings.Join(list, ", ")
}

// rightsOf returns the rights of the first group that somebody is in; nil without any.
func (s *SignIn) rightsOf(groups []string) *GroupRights {
	for i, r := range s.Groups {
		if slices.Contains(groups, r.Group) {
			return &s.Groups[i]
		}
	}
	return nil
}

// userHolder returns what a user may do now, or a NotFound error. The settings and the token may have changed since the
// sign-in.
func (g *guard) userHolder(ctx context.Context, u store.User) (identity, error) {
	unknown := &model.Error{Kind: model.NotFound, Message: "the rights of the user do not exist"}
	if g.signIn == nil || u.Issuer != g.signIn.Provider.Issuer() {
		return identity{}, unknown
	}
	rights := g.signIn.rightsOf([]string{u.Group})
	if rights == nil {
		return identity{}, unknown
	}
	id := identity{actor: u.Actor, role: rights.Role}
	if rights.Role != store.RoleEditor {
		return id, nil
	}
	t, err := g.tokens.TokenByName(ctx, rights.Token)
	if err == nil && t.Role != store.RoleEditor {
		err = unknown
	}
	if err != nil {
		return identity{}, err
	}
	g.noteUse(ctx, t)
	id.team = t.Team
	return id, nil
}
