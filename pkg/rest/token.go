package rest

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// kindToken is the word in paths and answers. Tokens are no kind of the model:
// they are beside the configuration.
const kindToken model.Kind = "token"

// addToken registers the calls for tokens.
func (s *server) addToken() {
	s.get("/token", s.withTokens(s.listTokens))
	s.get("/token/:token", s.withTokens(s.readToken))
	s.post("/token", s.withTokens(s.createToken))
	s.delete("/token/:token", s.withTokens(s.deleteToken))
}

// withTokens makes a call answer 404 if authentication is off.
func (s *server) withTokens(h handler) handler {
	return func(c *gin.Context) error {
		if s.guard == nil {
			s.noRoute(c)
			return nil
		}
		return h(c)
	}
}

// shownToken is a token as it is read.
type shownToken struct {
	Name     string      `json:"name"`
	Role     string      `json:"role"`
	CreateTS model.Time  `json:"create_ts"`
	LastUsed *model.Time `json:"last_used_ts"` // null: never
}

func (s *server) listTokens(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	tokens, err := s.guard.tokens.Tokens(c.Request.Context())
	if err != nil {
		return err
	}
	shown := make([]shownToken, len(tokens))
	for i, t := range tokens {
		shown[i] = viewToken(t)
	}
	s.answerRead(c, kindToken, shown)
	return nil
}

func viewToken(t store.Token) shownToken {
	v := shownToken{Name: t.Name, Role: t.Role, CreateTS: t.CreateTS}
	if !t.LastUsedTS.IsZero() {
		v.LastUsed = &t.LastUsedTS
	}
	return v
}

func (s *server) readToken(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	tokens, err := s.guard.tokens.Tokens(c.Request.Context())
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.Name == n[kindToken] {
			s.answerRead(c, kindToken, []shownToken{viewToken(t)})
			return nil
		}
	}
	return model.NotFoundError(model.NewKey(kindToken, n[kindToken]))
}

// createToken answers with the token itself, the only time that it is shown.
func (s *server) createToken(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	t, errs := bindToken(sent)
	if err := invalidFields(errs); err != nil {
		return err
	}
	if identityOf(c).open && t.Role != store.RoleAdmin {
		return &model.Error{
			Kind: model.Conflict, Message: "the first token must have the role admin",
			Hint: "from then on every call needs a token, and with a viewer's alone nobody could change anything",
		}
	}
	text := store.MakeToken()
	t.Hash, t.CreateTS = store.HashToken(text), model.At(s.guard.now())
	if err := s.guard.tokens.CreateToken(c.Request.Context(), t); err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	c.Header("Location", "/token/"+t.Name)
	s.writeJSON(c, http.StatusCreated, "application/json", struct {
		Name  string `json:"name"`
		Role  string `json:"role"`
		Token string `json:"token"`
	}{t.Name, t.Role, text})
	return nil
}

func (s *server) deleteToken(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	keepAdmin := s.guard.admin == nil
	if err := s.guard.tokens.DeleteToken(c.Request.Context(), n[kindToken], keepAdmin); err != nil {
		return err
	}
	s.answer(c, "delete_"+s.word+"_"+string(kindToken), map[string]int{"affected_rows": 1})
	return nil
}

// bindToken reads the fields of POST /token.
func bindToken(sent []form.Value) (store.Token, []model.FieldError) {
	var t store.Token
	var known, unknown form.Errors
	seen, bad := map[string]bool{}, map[string]bool{}
	reject := func(name, format string, args ...any) {
		bad[name] = true
		known.Add(name, format, args...)
	}
	fields := map[string]*string{"Token_name": &t.Name, "Token_role": &t.Role}
	for _, v := range sent {
		name := tokenField(v.Name)
		if name == "" {
			unknown.Add(v.Name, "unknown field; known are Token_name, Token_role")
			continue
		}
		switch err := form.CheckText(v.Text); {
		case seen[name]:
			reject(name, "is sent more than once")
		case v.Shape != form.IsText:
			reject(name, "must be text, not %s", v.Shape)
		case err != nil:
			reject(name, "%s", err)
		default:
			*fields[name] = v.Text
		}
		seen[name] = true
	}
	for _, e := range t.Validate() {
		if !bad[e.Field] {
			known.Add(e.Field, "%s", e.Message)
		}
	}
	return t, append(known.List, unknown.List...)
}

// tokenField is the canonical name of a field of a token; empty: it is none.
func tokenField(sent string) string {
	for _, name := range []string{"Token_name", "Token_role"} {
		if strings.EqualFold(sent, name) {
			return name
		}
	}
	return ""
}
