package xdsauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// lookEvery is how often a TokenSet checks for changes: about as long as a token
	// still works that another process has revoked.
	lookEvery = time.Second
	// lookTime bounds one check.
	lookTime = 5 * time.Second
	// touchEvery is the precision of the last use of a token.
	touchEvery = time.Minute
)

// errAnotherDatabase is why the tokens stay although the database has none.
var errAnotherDatabase = errors.New("the database never had a token: it is not the one from before, " +
	"so those from before stay valid until one is created or deleted")

// TokenSet keeps the tokens of a store in memory, so that access stays as it is while
// the database is unavailable. Use NewTokenSet, then Refresh, then Run.
type TokenSet struct {
	store store.ProxyTokens
	log   *slog.Logger
	now   func() time.Time
	// every is lookEvery, except in tests.
	every time.Duration

	// looking is held during a request to the store: an older answer never replaces a
	// newer one.
	looking sync.Mutex
	version string // of the tokens; requires looking

	mu     sync.Mutex
	tokens map[[sha256.Size]byte]*keptToken
	// used are those whose use is to be recorded.
	used map[[sha256.Size]byte]struct{}
}

// keptToken is a token in memory.
type keptToken struct {
	proxy, name string
	revoked     chan struct{}
	// streams is the number of open streams with it, noted is when its use was last
	// recorded. They require the lock of the set.
	streams int
	noted   time.Time
}

// NewTokenSet returns a set that is empty before the first Refresh. A nil clock means
// time.Now.
func NewTokenSet(tokens store.ProxyTokens, log *slog.Logger, now func() time.Time) *TokenSet {
	if now == nil {
		now = time.Now
	}
	return &TokenSet{
		store: tokens, log: log, now: now, every: lookEvery,
		tokens: map[[sha256.Size]byte]*keptToken{}, used: map[[sha256.Size]byte]struct{}{},
	}
}

// Find implements Tokens.
func (s *TokenSet) Find(ctx context.Context, hash [sha256.Size]byte) (Token, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[hash]
	if t == nil {
		return Token{}, false
	}
	t.streams++
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.streams--
	})
	s.use(hash, t)
	return Token{Name: t.name, Proxy: t.proxy, RateLimits: t.proxy == "", Revoked: t.revoked}, true
}

// use records that a token is used, if that was not recorded recently. It requires mu.
func (s *TokenSet) use(hash [sha256.Size]byte, t *keptToken) {
	if now := s.now(); now.Sub(t.noted) >= touchEvery {
		t.noted = now
		s.used[hash] = struct{}{}
	}
}

// Refresh checks the store for changes. When it returns, revoked tokens are closed.
func (s *TokenSet) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s.looking.Lock()
	defer s.looking.Unlock()
	all, version, err := s.store.ProxyTokensSince(ctx, s.version)
	switch {
	case err != nil:
		return fmt.Errorf("looking for changed tokens of the xDS port: %w", err)
	case version == s.version:
		return nil
	case version == "":
		return errAnotherDatabase
	}
	s.version = version
	s.replace(all)
	return nil
}

// replace replaces all tokens.
func (s *TokenSet) replace(all []store.ProxyToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[[sha256.Size]byte]*keptToken, len(all))
	for _, t := range all {
		kept := s.tokens[t.Hash]
		if kept == nil || kept.proxy != t.Proxy || kept.name != t.Name {
			kept = &keptToken{proxy: t.Proxy, name: t.Name, revoked: make(chan struct{}), noted: t.LastUsedTS.Time}
		}
		next[t.Hash] = kept
	}
	for hash, t := range s.tokens {
		if next[hash] != t {
			close(t.revoked)
		}
	}
	s.tokens = next
}

// Changed is Refresh after this process has changed a token. Run finds what it misses.
func (s *TokenSet) Changed(ctx context.Context) {
	if err := s.Refresh(context.WithoutCancel(ctx)); err != nil {
		s.log.WarnContext(ctx, "change of a token takes effect later", "err", err)
	}
}

// Run checks for changes once a second, and records the use of tokens, until ctx ends.
// It returns nil; a store that does not answer is tried again.
func (s *TokenSet) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := s.Refresh(ctx)
		if err == nil {
			err = s.touch(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && healthy:
			s.log.Warn("tokens of the xds port stay as they are, trying again", "err", err)
		case err == nil && !healthy:
			s.log.Info("tokens of the xds port are up to date again")
		}
		healthy = err == nil
	}
}

// touch records in the store which tokens are used.
func (s *TokenSet) touch(ctx context.Context) error {
	used := s.takeUsed()
	if len(used) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if err := s.store.TouchProxyTokens(ctx, used, s.now()); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, hash := range used {
			s.used[hash] = struct{}{}
		}
		return fmt.Errorf("noting the use of tokens of the xDS port: %w", err)
	}
	return nil
}

// takeUsed returns the tokens whose use is to be recorded: those that were used, and
// those with an open stream.
func (s *TokenSet) takeUsed() (list [][sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, t := range s.tokens {
		if t.streams > 0 {
			s.use(hash, t)
		}
	}
	for hash := range s.used {
		list = append(list, hash)
	}
	clear(s.used)
	return list
}
