package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/store/sqlstore"
)

// CreateToken makes a token in the database of cfg and prints it, alone on
// stdout: it is not shown again. One of a viewer needs that of an admin to be
// there, unless withoutAdmin says that the server has one of its own.
func CreateToken(ctx context.Context, cfg config.Config, env Env, name, role string, withoutAdmin bool) error {
	t := store.Token{Name: name, Role: role, CreateTS: model.At(time.Now())}
	if errs := t.Validate(); len(errs) > 0 {
		return &model.Error{Kind: model.Invalid, Message: "the token cannot be made", Fields: errs}
	}
	text := store.MakeToken()
	t.Hash = store.HashToken(text)
	return withTokens(ctx, cfg, env, func(tokens store.Tokens) error {
		if role != store.RoleAdmin && !withoutAdmin {
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

// needAdmin returns an error if no admin has a token: the first token closes an open
// API, and a viewer cannot open it for changes.
func needAdmin(ctx context.Context, tokens store.Tokens) error {
	list, err := tokens.Tokens(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(t store.Token) bool { return t.Role == store.RoleAdmin }) {
		return nil
	}
	return &model.Error{
		Kind: model.Conflict, Message: "there is no token with the role admin yet, and with a viewer's alone nobody could change anything",
		Hint: "make one first: gatehouse token create NAME --role admin; or give --without-admin if the server has --api-admin-token-file",
	}
}

// ListTokens prints the tokens of the database of cfg.
func ListTokens(ctx context.Context, cfg config.Config, env Env) error {
	return withTokens(ctx, cfg, env, func(tokens store.Tokens) error {
		list, err := tokens.Tokens(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
		_, err = fmt.Fprintln(table, "NAME\tROLE\tCREATED\tLAST_USED")
		for _, t := range list {
			used := "never"
			if !t.LastUsedTS.IsZero() {
				used = t.LastUsedTS.Format(time.RFC3339)
			}
			_, e := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, t.Role, t.CreateTS.Format(time.RFC3339), used)
			err = errors.Join(err, e)
		}
		return errors.Join(err, table.Flush())
	})
}

// RevokeToken deletes a token from the database of cfg, the last of an admin
// too.
func RevokeToken(ctx context.Context, cfg config.Config, env Env, name string) error {
	return withTokens(ctx, cfg, env, func(tokens store.Tokens) error {
		if err := tokens.DeleteToken(ctx, name, false); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "token %q is revoked\n", name)
		return err
	})
}

func withTokens(ctx context.Context, cfg config.Config, env Env, work func(store.Tokens) error) error {
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
