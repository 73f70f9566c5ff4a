package rest

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/perclient"
)

// Actors that are no stored token.
const (
	actorAPI   = "api"   // authentication is off
	actorAdmin = "admin" // Options.AdminToken
	actorLocal = "local" // anybody, while there is no token
)

// How many wrong tokens an address may send.
const (
	failureBurst    = 10
	failureInterval = 6 * time.Second // one more each
	retryAfter      = "6"             // seconds
)

func newFailures() *perclient.Limit { return perclient.New(failureBurst, failureInterval) }

const (
	// touchEvery is how exact the last use of a token is.
	touchEvery = time.Minute
	touchTime  = time.Second
)

// identity is who makes a request. The zero value is nobody.
type identity struct {
	actor, role string
	// team is what RoleEditor may change.
	team store.Team
	// open says that it needed no token, for there is none.
	open bool
}

type identityKey struct{}

func identityOf(c *gin.Context) identity {
	v, _ := c.Get(identityKey{})
	id, _ := v.(identity)
	return id
}

// actorOf is who the change log names for a request.
func actorOf(c *gin.Context) string {
	if id := identityOf(c); id.actor != "" {
		return id.actor
	}
	return actorAPI
}

// guard decides who may make which request.
type guard struct {
	tokens store.Tokens
	// sessions is nil if browsers cannot sign in.
	sessions store.Sessions
	// signIn is nil if no user of an identity provider can sign in; signIns bounds how often an address may.
	signIn  *SignIn
	signIns *perclient.Limit
	// admin is the hash of the admin token of the settings, nil without one.
	admin    *[sha256.Size]byte
	mayOpen  bool
	hosts    []string
	now      func() time.Time
	log      *slog.Logger
	origins  *http.CrossOriginProtection
	failures *perclient.Limit
	// told counts the refusals of nobody that the log tells of.
	told *perclient.Limit

	mu sync.Mutex
	// touched is when the use of a token, by name, was last noted.
	touched map[string]time.Time
}

// newGuard returns nil if authentication is off.
func newGuard(o Options, log *slog.Logger) *guard {
	if o.Tokens == nil {
		return nil
	}
	g := &guard{
		tokens: o.Tokens, sessions: o.Sessions, mayOpen: o.OpenWithoutTokens, now: o.Now, log: log,
		origins: http.NewCrossOriginProtection(), failures: newFailures(), told: newFailures(),
		touched: map[string]time.Time{}, signIn: o.SignIn, signIns: perclient.New(signInBurst, signInInterval),
	}
	if g.now == nil {
		g.now = time.Now
	}
	if o.AdminToken != "" {
		hash := store.HashToken(o.AdminToken)
		g.admin = &hash
	}
	for _, h := range o.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	return g
}

// authenticate lets a request through or answers it.
func (s *server) authenticate(c *gin.Context) {
	if s.guard == nil || isPublic(c) {
		return
	}
	if err := s.guard.admit(c, s.changes[c.Request.Method+" "+c.FullPath()]); err != nil {
		c.Writer.Header().Del("Allow") // gin's, where the answer would be 405
		s.fail(c, err)
		c.Abort()
	}
}

// isPublic reports whether the call needs no token.
func isPublic(c *gin.Context) bool {
	path := c.FullPath() // empty if there is nothing
	return slices.Contains([]string{"/", "/health", "/ready", "/openapi.yaml", "/openapi.json", "/docs", "/ui"}, path) ||
		strings.HasPrefix(path, "/docs/") || strings.HasPrefix(path, "/ui/")
}

// isSafe reports whether the method changes nothing (RFC 9110 section 9.2.1).
func isSafe(method string) bool { return isRead(method) || method == http.MethodOptions }

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// admit decides who may make a request. change says that the call changes the configuration and nothing else.
func (g *guard) admit(c *gin.Context, change bool) error {
	safe := isSafe(c.Request.Method)
	if !safe {
		if err := g.checkOrigin(c); err != nil {
			return err
		}
	}
	id, err := g.identify(c)
	if err != nil {
		return err
	}
	if id.open && safe {
		if err := g.checkHost(c.Request.Host); err != nil {
			return err
		}
	}
	c.Set(identityKey{}, id)
	if id.role == store.RoleAdmin || isRead(c.Request.Method) || id.role == store.RoleEditor && change {
		return nil
	}
	may := "only read (GET, HEAD)"
	if id.role == store.RoleEditor {
		may = "read, and change objects with the tags of the token"
	}
	who, instead := `token "`+id.actor+`"`, "use one with the role admin"
	if store.IsUserActor(id.actor) {
		who, instead = id.actor, "ask an admin"
	}
	return refusal(http.StatusForbidden, "forbidden", "The role does not allow this",
		who+" has the role "+id.role+", which may "+may+"; "+instead)
}

// checkOrigin keeps out writes that a page of another site, or of a forged name of this one, makes with a browser.
func (g *guard) checkOrigin(c *gin.Context) error {
	if err := g.checkHost(c.Request.Host); err != nil {
		return err
	}
	if err := g.origins.Check(c.Request); err != nil {
		return refusal(http.StatusForbidden, "forbidden_origin", "The request comes from another site",
			"a page of another origin may not change anything; call the API from its own origin, or without a browser")
	}
	return nil
}

// isAdmin reports whether the call may do everything.
func (s *server) isAdmin(c *gin.Context) bool {
	return s.guard == nil || identityOf(c).role == store.RoleAdmin
}

// checkRights refuses what a transaction has written if the caller may not change it.
func (s *server) checkRights(c *gin.Context, w store.Writer) error {
	if s.isAdmin(c) {
		return nil
	}
	return store.CheckTeam(w, identityOf(c).team, w.Written())
}

// checkHost keeps out pages whose host name an attacker points at this machine
// (DNS rebinding). Such a request carries the attacker's name, never an address.
func (g *guard) checkHost(sent string) error {
	host := sent
	if h, _, err := net.SplitHostPort(sent); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	_, err := netip.ParseAddr(host)
	if err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(g.hosts, host) {
		return nil
	}
	return refusal(http.StatusForbidden, "forbidden_host", "The Host is not one of this API",
		`the Host "`+shorten(sent)+`" is neither an address nor localhost; if it is a name of this API, `+
			`start it with --api-hosts and that name`)
}

// identify finds out who makes the request. A token that is sent is always
// checked, also where none is needed.
func (g *guard) identify(c *gin.Context) (identity, error) {
	ctx := c.Request.Context()
	sent := c.Request.Header.Values("Authorization")
	if len(sent) > 0 {
		id, err := g.tokenHolder(ctx, sent)
		if model.IsKind(err, model.NotFound) {
			return identity{}, g.refuseToken(c)
		}
		return id, err
	}
	if cookie, header := halvesOf(c.Request); cookie != "" && header != "" {
		id, _, err := g.sessionHolder(ctx, c.Request)
		if model.IsKind(err, model.NotFound) {
			return identity{}, unauthorized(c, "the session has ended; sign in again")
		}
		return id, err
	}
	id, err := g.withoutToken(ctx)
	if err == nil && !id.open {
		err = unauthorized(c, "this call needs a token: send it as Authorization: Bearer TOKEN")
	}
	return id, err
}

// withoutToken returns who calls without one: anybody while there is none at all, else nobody.
func (g *guard) withoutToken(ctx context.Context) (identity, error) {
	if !g.mayOpen || g.admin != nil {
		return identity{}, nil
	}
	some, err := g.tokens.HasTokens(ctx)
	if err != nil || some {
		return identity{}, err
	}
	return identity{actor: actorLocal, role: store.RoleAdmin, open: true}, nil
}

// tokenHolder returns the holder of the token in an Authorization header, or a NotFound
// error.
func (g *guard) tokenHolder(ctx context.Context, sent []string) (identity, error) {
	unknown := &model.Error{Kind: model.NotFound, Message: "the token does not exist"}
	scheme, text, _ := strings.Cut(sent[0], " ")
	if len(sent) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return identity{}, unknown
	}
	text = strings.TrimSpace(text)
	hash := store.HashToken(text)
	if !store.IsToken(text) && !g.isAdminToken(hash) {
		return identity{}, unknown
	}
	return g.holderOf(ctx, hash)
}

// noteUse notes the use of a token, seldom enough to cost nothing. A request does
// not fail for it.
func (g *guard) noteUse(ctx context.Context, t store.Token) {
	now := g.now()
	g.mu.Lock()
	last := t.LastUsedTS.Time
	if noted := g.touched[t.Name]; noted.After(last) && noted.After(t.CreateTS.Time) {
		last = noted
	}
	due := now.Sub(last) >= touchEvery
	if due {
		g.touched[t.Name] = now
	}
	g.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchTime)
	defer cancel()
	if err := g.tokens.TouchToken(ctx, t.Name, now); err != nil {
		g.log.WarnContext(ctx, "last use of a token not noted", "token", t.Name, "err", err)
	}
}

// refuseToken answers a wrong token. Only those are counted: a valid one is
// never turned away because of what others at its address do.
func (g *guard) refuseToken(c *gin.Context) *problem {
	client := perclient.Prefix(c.Request.RemoteAddr)
	if !g.failures.Allow(client, g.now()) {
		c.Header("Retry-After", retryAfter)
		return refusal(http.StatusTooManyRequests, "too_many_failures", "Too many wrong tokens",
			"too many wrong tokens came from this address; a valid one is accepted at any time")
	}
	g.log.WarnContext(c.Request.Context(), "wrong token",
		"client", client.Addr().String(), "method", c.Request.Method, "path", requestPath(c))
	return unauthorized(c, "the token is not valid: it is unknown or was revoked")
}

// refusalLevel is the level at which a refused write is logged. Anybody can send
// writes without a token, so those of one address beyond the limit of failures are
// logged at debug.
func (g *guard) refusalLevel(c *gin.Context, id identity) slog.Level {
	if id.actor == "" && g != nil && !g.told.Allow(perclient.Prefix(c.Request.RemoteAddr), g.now()) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func unauthorized(c *gin.Context, detail string) *problem {
	c.Header("WWW-Authenticate", `Bearer realm="gatehouse"`)
	return refusal(http.StatusUnauthorized, "unauthorized", "A valid token is required", detail)
}

func refusal(status int, code, title, detail string) *problem {
	p := newProblem(status, code, detail)
	p.Title = title
	return p
}

// isRefused reports whether the status is one of this file.
func isRefused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
}
