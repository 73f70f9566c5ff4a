package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// kindToken is the word in paths and answers. Tokens are no kind of the model:
// they are beside the configuration.
const kindToken model.Kind = "token"

// addToken registers the calls for tokens.
func (s *server) addToken() {
	s.addTokens("/token", tokenSet{s.guard != nil, s.listTokens, s.createToken, s.deleteToken, noToken})
	ofProxies := tokenSet{s.proxyTokens != nil, s.listProxyTokens, s.createProxyToken, s.deleteProxyToken, noProxyToken}
	s.addTokens(pathOf(model.KindProxy)+"/token", ofProxies)
	s.addTokens("/ratelimit/token", ofProxies)
}

// tokenSet is what the calls for the tokens of the API, of a proxy, and of the
// rate-limit engine do, with the names of the path.
type tokenSet struct {
	// on says that there are such tokens. Else the calls answer 404.
	on bool
	// list returns all by name, and an error if the path leads nowhere.
	list func(ctx context.Context, n names) ([]shownToken, error)
	// create stores a token of these fields and returns its path.
	create func(c *gin.Context, n names, sent []form.Value) (made madeToken, path string, err error)
	delete func(ctx context.Context, n names) error
	// missing returns the error that there is no token of the name of the path.
	missing func(n names) error
}

// shownToken is a token as it is read.
type shownToken struct {
	Name  string `json:"name"`
	Role  string `json:"role,omitempty"`
	Proxy string `json:"proxy,omitempty"`
	*shownTeam
	CreateTS model.Time  `json:"create_ts"`
	LastUsed *model.Time `json:"last_used_ts"` // null: never
}

// shownTeam is what a token with the role editor may change.
type shownTeam struct {
	Tags       []string `json:"tags"`
	Hosts      []string `json:"hosts"`
	Ports      []int    `json:"ports"`
	MaxObjects int      `json:"max_objects"`
}

func showTeam(t store.Token) *shownTeam {
	if t.Role != store.RoleEditor {
		return nil
	}
	return &shownTeam{notNull(t.Team.Tags), notNull(t.Team.Hosts), notNull(t.Team.Ports), t.Team.MaxObjects}
}

// madeToken is the only answer with the token itself.
type madeToken struct {
	Name  string `json:"name"`
	Role  string `json:"role,omitempty"`
	Proxy string `json:"proxy,omitempty"`
	Token string `json:"token"`
}

// addTokens registers the calls for a set of tokens.
func (s *server) addTokens(path string, t tokenSet) {
	// with makes a handler of what a call does with the names of its path.
	with := func(do func(c *gin.Context, n names) error) handler {
		return func(c *gin.Context) error {
			if !t.on {
				s.noRoute(c)
				return nil
			}
			if err := noQuery(c); err != nil {
				return err
			}
			n, err := pathNames(c)
			if err != nil {
				return err
			}
			return do(c, n)
		}
	}
	one := path + "/:" + string(kindToken)
	s.get(path, with(func(c *gin.Context, n names) error { return s.readTokens(c, n, t) }))
	s.get(one, with(func(c *gin.Context, n names) error { return s.readTokens(c, n, t) }))
	s.post(path, with(func(c *gin.Context, n names) error { return s.makeToken(c, n, t) }))
	s.delete(one, with(func(c *gin.Context, n names) error {
		if err := t.delete(c.Request.Context(), n); err != nil {
			return err
		}
		s.answer(c, "delete_"+s.word+"_"+string(kindToken), map[string]int{"affected_rows": 1})
		return nil
	}))
}

// readTokens answers with the tokens of a set, or with the one that the path names.
func (s *server) readTokens(c *gin.Context, n names, t tokenSet) error {
	shown, err := t.list(c.Request.Context(), n)
	if err != nil {
		return err
	}
	if name, one := n[kindToken]; one {
		shown = slices.DeleteFunc(shown, func(t shownToken) bool { return t.Name != name })
		if len(shown) == 0 {
			return t.missing(n)
		}
	}
	s.answerRead(c, kindToken, shown)
	return nil
}

// makeToken answers with the token itself, the only time that it is shown.
func (s *server) makeToken(c *gin.Context, n names, t tokenSet) error {
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	made, path, err := t.create(c, n, sent)
	if err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	c.Header("Location", path)
	s.writeJSON(c, http.StatusCreated, "application/json", made)
	return nil
}

// lastUsed is nil for never.
func lastUsed(at model.Time) *model.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func (s *server) listTokens(ctx context.Context, _ names) ([]shownToken, error) {
	tokens, err := s.guard.tokens.Tokens(ctx)
	shown := make([]shownToken, len(tokens))
	for i, t := range tokens {
		shown[i] = shownToken{
			Name: t.Name, Role: t.Role, shownTeam: showTeam(t), CreateTS: t.CreateTS, LastUsed: lastUsed(t.LastUsedTS),
		}
	}
	return shown, err
}

func (s *server) createToken(c *gin.Context, _ names, sent []form.Value) (made madeToken, path string, err error) {
	t := store.Token{CreateTS: model.At(s.now())}
	errs := bindToken(sent, []tokenField{
		textField("Token_name", &t.Name), textField("Token_role", &t.Role), wordsField("Token_tags", &t.Team.Tags),
		wordsField("Token_hosts", &t.Team.Hosts), {"Token_ports", setPorts(&t.Team.Ports)},
		{"Token_max_objects", setNumber(&t.Team.MaxObjects)},
	}, &t)
	if err := invalidFields(errs); err != nil {
		return madeToken{}, "", err
	}
	if identityOf(c).open && t.Role != store.RoleAdmin {
		return madeToken{}, "", &model.Error{
			Kind: model.Conflict, Message: "the first token must have the role admin",
			Hint: "from then on every call requires a token, and a viewer's token cannot change anything",
		}
	}
	text := store.MakeToken()
	t.Hash = store.HashToken(text)
	return madeToken{Name: t.Name, Role: t.Role, Token: text}, "/token/" + t.Name,
		s.guard.tokens.CreateToken(c.Request.Context(), t)
}

func (s *server) deleteToken(ctx context.Context, n names) error {
	keepAdmin := s.guard.admin == nil
	return s.guard.tokens.DeleteToken(ctx, n[kindToken], keepAdmin)
}

func noToken(n names) error { return model.NotFoundError(model.NewKey(kindToken, n[kindToken])) }

// tokenField is a field of a token, and what takes its value.
type tokenField struct {
	name string
	set  func(v form.Value) error
}

func textField(name string, to *string) tokenField {
	return tokenField{name, func(v form.Value) error {
		if v.Shape != form.IsText {
			return fmt.Errorf("must be text, not %s", v.Shape)
		}
		*to = v.Text
		return nil
	}}
}

// wordsField is a list, or text with commas between the words.
func wordsField(name string, to *[]string) tokenField {
	return tokenField{name, func(v form.Value) error {
		var words []string
		switch v.Shape {
		case form.IsText:
			words = strings.Split(v.Text, ",")
		case form.IsArray:
			if err := json.Unmarshal([]byte(v.Text), &words); err != nil {
				return errors.New("must be a list of words")
			}
		default:
			return fmt.Errorf("must be a list of words, or text with commas between them, not %s", v.Shape)
		}
		*to = nil
		for _, word := range words {
			if word = strings.TrimSpace(word); word != "" && !slices.Contains(*to, word) {
				*to = append(*to, word)
			}
		}
		return nil
	}}
}

// setPorts takes a list of numbers, or text with commas between them.
func setPorts(to *[]int) func(form.Value) error {
	return func(v form.Value) error {
		text := v.Text
		if v.Shape == form.IsText {
			text = "[" + text + "]"
		}
		var ports []int
		if err := json.Unmarshal([]byte(text), &ports); err != nil || v.Shape != form.IsText && v.Shape != form.IsArray {
			return errors.New("must be a list of ports, or text with commas between them")
		}
		slices.Sort(ports)
		*to = slices.Compact(ports)
		return nil
	}
}

func setNumber(to *int) func(form.Value) error {
	return func(v form.Value) error {
		n, err := strconv.Atoi(v.Text)
		if err != nil || v.Shape != form.IsText && v.Shape != form.IsNumber {
			return errors.New("must be a whole number")
		}
		*to = n
		return nil
	}
}

// bindToken reads the fields of token and returns what is wrong with them.
func bindToken(
	sent []form.Value, fields []tokenField, token interface{ Validate() []model.FieldError },
) []model.FieldError {
	var known, unknown form.Errors
	seen, bad := map[string]bool{}, map[string]bool{}
	reject := func(name, format string, args ...any) {
		bad[name] = true
		known.Add(name, format, args...)
	}
	for _, v := range sent {
		at := slices.IndexFunc(fields, func(f tokenField) bool { return strings.EqualFold(v.Name, f.name) })
		if at < 0 {
			unknown.Add(v.Name, "unknown field; %s", takenFields(fields))
			continue
		}
		name := fields[at].name
		switch err := form.CheckText(v.Text); {
		case seen[name]:
			reject(name, "is sent more than once")
		case err != nil:
			reject(name, "%s", err)
		default:
			if err := fields[at].set(v); err != nil {
				reject(name, "%s", err)
			}
		}
		seen[name] = true
	}
	for _, e := range token.Validate() {
		if !bad[e.Field] {
			known.Add(e.Field, "%s", e.Message)
		}
	}
	return append(known.List, unknown.List...)
}

func takenFields(fields []tokenField) string {
	if len(fields) == 1 {
		return "this call takes " + fields[0].name
	}
	var list []string
	for _, f := range fields {
		list = append(list, f.name)
	}
	return "known fields are " + strings.Join(list, ", ")
}
