package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

// NewToken is a token of the REST API to create. What follows Role is for the role editor.
type NewToken struct {
	Name, Role  string
	Tags, Hosts []string
	Ports       []int
	MaxObjects  int
}

// CreateToken creates a token in the database of cfg and prints only the token on stdout: it
// is never shown again. A token with another role requires that an admin's token exists, unless
// withoutAdmin says that the server has its own admin token.
func CreateToken(ctx context.Context, cfg config.Config, env Env, n NewToken, withoutAdmin bool) error {
	t := store.Token{Name: n.Name, Role: n.Role, CreateTS: model.At(time.Now())}
	t.Team = store.Team{Tags: n.Tags, Hosts: n.Hosts, Ports: n.Ports, MaxObjects: n.MaxObjects}
	if errs := t.Validate(); len(errs) > 0 {
		return &model.Error{Kind: model.Invalid, Message: "the token cannot be created", Fields: errs}
	}
	text := store.MakeToken()
	t.Hash = store.HashToken(text)
	return withTokens(ctx, cfg, env, func(tokens *sqlstore.Store) error {
		if n.Role != store.RoleAdmin && !withoutAdmin {
			if err := needAdmin(ctx, tokens); err != nil {
				return err
			}
		}
		if err := tokens.CreateToken(ctx, t); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.Stdout, text)
		return err
	})
}

// CreateProxyToken is CreateToken for a token that authenticates an Envoy of the
// owner's proxy, or the rate-limit engine, at the xDS port.
func CreateProxyToken(ctx context.Context, cfg config.Config, env Env, owner TokenOwner, name string) error {
	t := store.ProxyToken{Proxy: owner.Proxy, Name: name, CreateTS: model.At(time.Now())}
	if errs := t.Validate(); len(errs) > 0 {
		return &model.Error{Kind: model.Invalid, Message: "the token cannot be created", Fields: errs}
	}
	text := store.MakeProxyToken()
	t.Hash = store.HashToken(text)
	return withTokens(ctx, cfg, env, func(tokens *sqlstore.Store) error {
		if err := tokens.CreateProxyToken(ctx, t); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.Stdout, text)
		return err
	})
}

// needAdmin returns an error if no admin has a token: the first token closes an open
// API, and a viewer cannot reopen it for changes.
func needAdmin(ctx context.Context, tokens store.Tokens) error {
	list, err := tokens.Tokens(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(t store.Token) bool { return t.Role == store.RoleAdmin }) {
		return nil
	}
	return &model.Error{
		Kind: model.Conflict, Message: "no token with the role admin exists yet, " +
			"and a token with another role cannot create one",
		Hint: "create one first: gatehouse token create NAME --role admin; " +
			"or set --without-admin if the server has --api-admin-token-file",
	}
}

// TokenOwner says whose tokens a command works on. The zero value means the callers of
// the API.
type TokenOwner struct {
	// Proxy is the name of a proxy; its Envoys authenticate with the tokens.
	Proxy string
	// RateLimit means the tokens of the rate-limit engine.
	RateLimit bool
}

// API reports whether the tokens are for calls of the API.
func (o TokenOwner) API() bool { return o == TokenOwner{} }

// ListedToken is a token in a list, as the API shows it.
type ListedToken struct {
	Name       string      `json:"name"`
	Role       string      `json:"role,omitempty"`
	Proxy      string      `json:"proxy,omitempty"`
	Tags       []string    `json:"tags,omitempty"`
	Hosts      []string    `json:"hosts,omitempty"`
	Ports      []int       `json:"ports,omitempty"`
	MaxObjects int         `json:"max_objects,omitempty"`
	CreateTS   model.Time  `json:"create_ts"`
	LastUsedTS *model.Time `json:"last_used_ts"` // nil: never
}

// ListTokens returns the tokens of the database of cfg.
func ListTokens(ctx context.Context, cfg config.Config, env Env, owner TokenOwner) (list []ListedToken, err error) {
	add := func(t ListedToken, used model.Time) {
		if !used.IsZero() {
			t.LastUsedTS = &used
		}
		list = append(list, t)
	}
	err = withTokens(ctx, cfg, env, func(db *sqlstore.Store) error {
		if owner.API() {
			tokens, err := db.Tokens(ctx)
			for _, t := range tokens {
				add(ListedToken{
					Name: t.Name, Role: t.Role, CreateTS: t.CreateTS,
					Tags: t.Team.Tags, Hosts: t.Team.Hosts, Ports: t.Team.Ports, MaxObjects: t.Team.MaxObjects,
				}, t.LastUsedTS)
			}
			return err
		}
		tokens, err := db.ProxyTokens(ctx, owner.Proxy)
		if err == nil && len(tokens) == 0 {
			err = knownProxy(ctx, db, owner.Proxy)
		}
		for _, t := range tokens {
			add(ListedToken{Name: t.Name, Proxy: t.Proxy, CreateTS: t.CreateTS}, t.LastUsedTS)
		}
		return err
	})
	return list, err
}

// knownProxy returns a NotFound error for a name that no proxy has.
func knownProxy(ctx context.Context, db *sqlstore.Store, proxy string) error {
	if proxy == "" {
		return nil
	}
	return db.Read(ctx, func(r store.Reader) error {
		_, err := r.Get(model.ProxyKey(proxy))
		return err
	})
}

// RevokeToken deletes a token from the database of cfg, even the last one of an admin.
func RevokeToken(ctx context.Context, cfg config.Config, env Env, owner TokenOwner, name string) error {
	return withTokens(ctx, cfg, env, func(db *sqlstore.Store) error {
		text := fmt.Sprintf("token %q", name)
		revoke := func() error { return db.DeleteToken(ctx, name, false) }
		if !owner.API() {
			text = store.ProxyToken{Proxy: owner.Proxy, Name: name}.Text()
			revoke = func() error { return db.DeleteProxyToken(ctx, owner.Proxy, name) }
		}
		if err := revoke(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "%s is revoked\n", text)
		return err
	})
}

func withTokens(ctx context.Context, cfg config.Config, env Env, work func(*sqlstore.Store) error) error {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return err
	}
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: dsn, Log: env.Log, InUse: true})
	if err != nil {
		return err
	}
	if err = printDatabase(env, dsn); err == nil {
		err = work(db)
	}
	return errors.Join(err, db.Close())
}
