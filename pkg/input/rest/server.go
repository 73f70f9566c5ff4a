package rest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Options are what the API needs. Only Store is required.
type Options struct {
	Store store.Store
	// SchemaWord is the fixed word in response keys; empty means core_db.
	SchemaWord string
	// Log gets writes at info and all other requests at debug; nil means none.
	Log *slog.Logger
	// NewProxy returns a proxy with the defaults for its name; nil means
	// model.NewProxy for every name. A standalone gateway gives its own proxy
	// other ports.
	NewProxy func(name string) *model.Proxy
	// Check refuses what a transaction has written when it cannot become a
	// working configuration; nil means that everything can.
	Check func(store.Reader, store.Changes) error
	// CheckRollback is Check for a rollback; nil means Check.
	CheckRollback func(store.Reader, store.Changes) error
	// Warn tells what a transaction has written that works and does not do what
	// it seems to, in words; nil means nothing.
	Warn func(store.Reader, store.Changes) ([]string, error)
	// Ready says why the process cannot serve yet; nil means that it always
	// can. Its text is shown in the answer of GET /ready.
	Ready func() error

	// LoginTest tries the login of a service; nil means that there is no such call.
	LoginTest LoginTest
	// Certificates orders certificates; nil means that nobody does.
	Certificates Certificates

	// Live is what is known of the Envoys, their rate limits and upstreams.
	Live inspect.Sources

	// Tokens holds who may call the API; nil means everybody.
	Tokens store.Tokens
	// Sessions holds which browsers have signed in; nil means that none can.
	Sessions store.Sessions
	// SignIn lets users of an identity provider sign in; nil means that none can. It needs Tokens and Sessions.
	SignIn *SignIn
	// AdminToken is one more token, of the actor "admin"; empty means none.
	AdminToken string
	// OpenWithoutTokens lets everybody call while there is no token at all;
	// else nobody can.
	OpenWithoutTokens bool
	// Hosts are names of this API, beside localhost and addresses, that the
	// Host of a request may have.
	Hosts []string
	// ProxyTokens holds who may connect to the xDS port; nil means that the API has no
	// calls for that.
	ProxyTokens store.ProxyTokens
	// ProxyTokensChanged is called when a call has changed one, before the answer; nil
	// means that nobody needs to know.
	ProxyTokensChanged func(context.Context)
	// Elsewhere says where to change an object, if not with this API: writes are refused with it. The key has no name
	// where a path names none, and the kind token for tokens. Nil means that the API changes the configuration.
	Elsewhere func(model.Key) string
	// Degraded says what does not work while the process serves; nil means nothing.
	Degraded func() []string
	// Site is the site of the documentation as a zip; nil means the one that the program was built with, if any.
	Site []byte
	// Now is the clock of tokens and certificates; nil means time.Now.
	Now func() time.Time

	// Wait serves ?wait=applied; nil means that there is nothing to wait for,
	// and the parameter is refused.
	Wait Wait
	// Ping is how long a stream of events is silent at most; 0 means 15 s.
	Ping time.Duration
	// Pace is how long a client may take for 64 KiB of an answer before it is cut
	// off; 0 means 30 s.
	Pace time.Duration
	// Metrics answers GET /metrics; nil means that there is no such call.
	Metrics http.Handler
	// Observe is called for each answer, with the path of the API's own table
	// that led to it (empty for none); may be nil.
	Observe func(ctx context.Context, method, path string, status int, took time.Duration)
	// OnStop has a function called when the server begins to stop, unless it is
	// forgotten before: streams and waits end then. Nil means never.
	OnStop func(func()) (forget func() bool)
}

type server struct {
	store    store.Store
	word     string
	log      *slog.Logger
	newProxy func(name string) *model.Proxy
	ready    func() error
	check    func(store.Reader, store.Changes) error
	// checkRollback is check for a rollback.
	checkRollback func(store.Reader, store.Changes) error
	warn          func(store.Reader, store.Changes) ([]string, error)
	wait          Wait
	events        *status.Feed
	ping          time.Duration
	pace          time.Duration
	large         readers
	applying      chan struct{} // capacity 1: a document is being applied
	metrics       http.Handler
	loginTest     LoginTest
	certificates  Certificates
	onAnswer      func(ctx context.Context, method, path string, status int, took time.Duration)
	onStop        func(func()) (forget func() bool)
	router        *gin.Engine
	live          *inspect.Inspector
	// elsewhere and degraded are Options.Elsewhere and Options.Degraded; the first may be nil.
	elsewhere func(model.Key) string
	degraded  func() []string
	// now is the clock of tokens and certificates.
	now func() time.Time
	// guard is nil if authentication is off.
	guard *guard
	// changes has the calls, method and path, that change the configuration through write and nothing else: editors may
	// make them, because write checks what they change.
	changes map[string]bool
	// proxyTokens is nil if there are no calls for them.
	proxyTokens        store.ProxyTokens
	proxyTokensChanged func(context.Context)
}

// newServer returns one without any path.
func newServer(o Options) *server {
	s := &server{
		store: o.Store, word: cmp.Or(o.SchemaWord, "core_db"), log: o.Log,
		newProxy: o.NewProxy, ready: o.Ready, check: o.Check, warn: o.Warn, router: newRouter(),
		wait: o.Wait, ping: cmp.Or(o.Ping, 15*time.Second), pace: cmp.Or(o.Pace, 30*time.Second),
		large: readers{by: map[string]int{}}, changes: map[string]bool{},
		applying: make(chan struct{}, 1), metrics: o.Metrics, loginTest: o.LoginTest, certificates: o.Certificates, onAnswer: o.Observe, onStop: o.OnStop,
		elsewhere: o.Elsewhere, degraded: o.Degraded,
	}
	if s.degraded == nil {
		s.degraded = func() []string { return nil }
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.newProxy == nil {
		s.newProxy = func(string) *model.Proxy { return model.NewProxy() }
	}
	if s.ready == nil {
		s.ready = func() error { return nil }
	}
	s.live = inspect.New(o.Live)
	if o.Live.Status != nil {
		s.events = o.Live.Status.Feed()
	}
	if s.now = o.Now; s.now == nil {
		s.now = time.Now
	}
	s.guard = newGuard(o, s.log)
	s.proxyTokens = o.ProxyTokens
	if s.proxyTokensChanged = o.ProxyTokensChanged; s.proxyTokensChanged == nil {
		s.proxyTokensChanged = func(context.Context) {}
	}
	if s.check == nil {
		s.check = func(store.Reader, store.Changes) error { return nil }
	}
	if s.checkRollback = o.CheckRollback; s.checkRollback == nil {
		s.checkRollback = s.check
	}
	if s.warn == nil {
		s.warn = func(store.Reader, store.Changes) ([]string, error) { return nil, nil }
	}
	return s
}

// New returns the handler of the whole API.
func New(o Options) http.Handler {
	s := newServer(o)
	s.router.Use(s.limitIdle, s.logRequest, s.recover, s.authenticate, s.checkAccept, s.refuseWrites)
	s.router.NoRoute(s.noRoute)
	s.router.NoMethod(s.noMethod)

	s.addKinds()
	s.addCopy()
	s.addDump()
	s.addRevision()
	s.addConfig()
	s.addHealth()
	s.addStatus()
	s.addExplain()
	s.addRateLimits()
	s.addLoginTest()
	s.addCertificates()
	s.addEvents()
	s.addMetrics()
	s.addDocs(o.Site)
	s.addConsole()
	s.addSession()
	s.addSignIn()
	s.addRoot()
	s.addToken()
	return s.router
}

func newRouter() *gin.Engine {
	// Gin prints its routes to stdout unless this switch, which is the
	// package's and not an engine's, is set before gin.New. Nothing else in
	// the program uses gin.
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	// Routes match the path as sent, so that %2F in a name stays in the name;
	// pathNames decodes them (gin would read "+" as a space).
	r.UseEscapedPath = true
	r.UnescapePathValues = false
	return r
}

// handler answers a request, or returns the error to answer with.
type handler func(c *gin.Context) error

func (s *server) handle(method, path string, h handler) {
	s.router.Handle(method, path, func(c *gin.Context) {
		if err := h(c); err != nil {
			s.fail(c, err)
		}
	})
}

// change registers a call that changes the configuration with write, and nothing else.
func (s *server) change(method, path string, h handler) {
	s.changes[method+" "+path] = true
	s.handle(method, path, h)
}

// get registers a read; HEAD is the same without the body, which net/http
// leaves out.
func (s *server) get(path string, h handler) {
	s.handle(http.MethodGet, path, h)
	s.handle(http.MethodHead, path, h)
}

func (s *server) post(path string, h handler)   { s.handle(http.MethodPost, path, h) }
func (s *server) delete(path string, h handler) { s.handle(http.MethodDelete, path, h) }

// logRequest writes one line a request; that of a write says who made it, and
// stands out where it was refused for that.
func (s *server) logRequest(c *gin.Context) {
	start := time.Now()
	c.Next()
	status, took := c.Writer.Status(), time.Since(start)
	if s.onAnswer != nil {
		s.onAnswer(c.Request.Context(), c.Request.Method, c.FullPath(), status, took)
	}
	what := []any{
		"method", c.Request.Method, "path", requestPath(c), "status", status,
		"rev", c.Writer.Header().Get(revisionHeader), "took", took,
	}
	if isSafe(c.Request.Method) {
		s.log.DebugContext(c.Request.Context(), "request answered", what...)
		return
	}
	level, id := slog.LevelInfo, identityOf(c)
	if isRefused(status) {
		level = s.guard.refusalLevel(c, id)
	}
	actor := id.actor
	if actor == "" && !isRefused(status) {
		actor = actorAPI
	}
	if message := c.GetString(messageParameter); message != "" {
		what = append(what, "message", message)
	}
	s.log.Log(c.Request.Context(), level, "write", append([]any{"actor", actor, "role", id.role}, what...)...)
}

// recover answers for a handler that panicked. The stack is for debugging and
// stays out of a normal log.
func (s *server) recover(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v) // net/http's own signal to drop the connection
		}
		ctx := c.Request.Context()
		s.log.ErrorContext(ctx, "request handler panicked",
			"method", c.Request.Method, "path", requestPath(c), "err", v)
		if s.log.Enabled(ctx, slog.LevelDebug) {
			s.log.DebugContext(ctx, "stack of the panic", "stack", string(debug.Stack()))
		}
		if !c.Writer.Written() {
			s.writeProblem(c, internalProblem())
		}
		c.Abort()
	}()
	c.Next()
}

func (s *server) noRoute(c *gin.Context) {
	p := newProblem(http.StatusNotFound, "not_found", "there is nothing at "+shorten(requestPath(c)))
	if trimmed := strings.TrimRight(requestPath(c), "/"); trimmed != requestPath(c) && trimmed != "" {
		p.Detail += "; paths have no slash at the end"
	}
	s.writeProblem(c, p)
}

func (s *server) noMethod(c *gin.Context) {
	s.writeProblem(c, newProblem(http.StatusMethodNotAllowed, "method_not_allowed",
		c.Request.Method+" is not allowed here; allowed: "+c.Writer.Header().Get("Allow")))
}

// written is what a write did, or in a dry run would do.
type written struct {
	revision int64
	dry      bool
	// changes is the text of what changed, where the answer lists it. writeChanges
	// takes it.
	changes *spool
	// keys are known of a write with a wait.
	keys    []model.Key
	lagging []status.Lag
	// warnings are told in the header of the answer.
	warnings []string
	// key is the new API key; empty: none was made. Only this answer has it.
	key string
}

var errDryRun = errors.New("dry run")

// write runs fn as the one transaction of this request. What it changed must
// make a working configuration; a dry run then takes it back, a wait follows it.
// stored are called when it is committed, before the wait.
func (s *server) write(c *gin.Context, m mode, fn func(store.Writer) error, stored ...func()) (written, error) {
	origin := store.Origin{Actor: actorOf(c), Request: c.Request.Method + " " + requestPath(c), Message: m.message}
	c.Set(messageParameter, m.message)
	done := written{dry: m.dry}
	var err error
	done.revision, err = s.store.Write(c.Request.Context(), origin, func(w store.Writer) error {
		if err := fn(w); err != nil {
			return err
		}
		if err := s.checkRights(c, w); err != nil {
			return err
		}
		check := s.check
		if m.rollback {
			check = s.checkRollback
		}
		if err := check(w, w.Written()); err != nil {
			return err
		}
		warnings, err := s.warn(w, w.Written())
		if err != nil {
			return err
		}
		done.warnings = append(w.Warnings(), warnings...)
		if err := done.collect(w.Written(), m); err != nil {
			return err
		}
		if m.asks != nil {
			if err := m.asks(w); err != nil {
				return err
			}
		}
		if m.dry {
			return errDryRun
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	if err != nil && done.changes != nil {
		_ = done.changes.close() // there is nothing to lose in it
	}
	if err == nil {
		setWarnings(c, done.warnings)
		for _, f := range stored {
			f()
		}
	}
	if err == nil && m.wait > 0 {
		done.lagging = s.waitApplied(c, m, done)
		setWarnings(c, s.warnFailing(c.Request.Context(), m.waitKeys(done.keys)))
	}
	return done, err
}

// collect stores what the answer or the wait needs of the changes, which can be read
// only until the transaction ends.
func (w *written) collect(changes store.Changes, m mode) (err error) {
	if m.tells {
		if w.changes, err = spoolChanges(changes); err != nil {
			return err
		}
	}
	if m.wait == 0 {
		return nil
	}
	for c, err := range changes() {
		if err != nil {
			return err
		}
		w.keys = append(w.keys, c.Key)
	}
	return nil
}

func (s *server) read(ctx context.Context, fn func(store.Reader) error) error {
	return s.store.Read(ctx, fn)
}

// requestPath is the path as it was sent.
func requestPath(c *gin.Context) string { return c.Request.URL.EscapedPath() }
