package sqlstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ store.ProxyTokens = (*Store)(nil)

// proxyToken is a row of the table of proxy tokens.
type proxyToken struct {
	Proxy, Name, Hash string
	CreateTS          model.Time
	LastUsedTS        sql.NullTime
}

func (t proxyToken) model() (store.ProxyToken, error) {
	out := store.ProxyToken{Proxy: t.Proxy, Name: t.Name, CreateTS: t.CreateTS}
	if t.LastUsedTS.Valid {
		out.LastUsedTS = model.At(t.LastUsedTS.Time)
	}
	return out, decodeHash(t.Name, t.Hash, &out.Hash)
}

func proxyTokenList(rows []proxyToken) ([]store.ProxyToken, error) {
	list := make([]store.ProxyToken, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = row.model(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// CreateProxyToken implements store.ProxyTokens.
func (s *Store) CreateProxyToken(ctx context.Context, t store.ProxyToken) error {
	row := proxyToken{Proxy: t.Proxy, Name: t.Name, Hash: hex.EncodeToString(t.Hash[:]), CreateTS: t.CreateTS}
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, step func()) error {
		if t.Proxy != "" {
			if _, err := (&reader{store: s, tx: tx, step: step}).Get(model.ProxyKey(t.Proxy)); err != nil {
				return err
			}
		}
		err := tx.Create(&row).Error
		if err != nil && classify(err) == classDuplicate {
			return tokenExists(t.Path(), t.Text())
		}
		if err != nil {
			return s.fail(ctx, "storing a token of a proxy", err)
		}
		return s.changeProxyTokenVersion(tx)
	})
}

// ProxyTokens implements store.ProxyTokens.
func (s *Store) ProxyTokens(ctx context.Context, proxy string) ([]store.ProxyToken, error) {
	var rows []proxyToken
	err := s.view(ctx, func(r *reader) error {
		if !isStorable(proxy) {
			return nil
		}
		return r.fail("listing the tokens of a proxy", r.db().Where("proxy = ?", proxy).Order("name").Find(&rows).Error)
	})
	if err != nil {
		return nil, err
	}
	return proxyTokenList(rows)
}

// DeleteProxyToken implements store.ProxyTokens.
func (s *Store) DeleteProxyToken(ctx context.Context, proxy, name string) error {
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		deleted := tx
		if isStorable(proxy + name) {
			deleted = tx.Where("proxy = ? AND name = ?", proxy, name).Delete(&proxyToken{})
		}
		switch {
		case deleted.Error != nil:
			return s.fail(ctx, "deleting a token of a proxy", deleted.Error)
		case deleted.RowsAffected == 0:
			return store.ProxyToken{Proxy: proxy, Name: name}.NotFound()
		}
		return s.changeProxyTokenVersion(tx)
	})
}

// proxyTokenVersion is the note that holds the version of the table.
const proxyTokenVersion = "proxy_token_version"

// changeProxyTokenVersion signals to every reader of ProxyTokensSince that rows
// changed.
func (s *Store) changeProxyTokenVersion(tx *gorm.DB) error {
	return s.fail(tx.Statement.Context, "noting that tokens of proxies changed", setNote(tx, proxyTokenVersion, rand.Text()))
}

// ProxyTokensSince implements store.ProxyTokens.
func (s *Store) ProxyTokensSince(ctx context.Context, version string) (all []store.ProxyToken, now string, err error) {
	var rows []proxyToken
	err = s.viewIn(ctx, s.access, func(r *reader) error {
		err := r.db().Raw("SELECT text FROM note WHERE name = ?", proxyTokenVersion).Row().Scan(&now)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return r.fail("looking for changed tokens of proxies", err)
		}
		if now == version {
			return nil
		}
		return r.fail("reading the tokens of proxies", r.db().Order("proxy, name").Find(&rows).Error)
	})
	if err != nil {
		return nil, "", err
	}
	all, err = proxyTokenList(rows)
	return all, now, err
}

// TouchProxyTokens implements store.ProxyTokens.
func (s *Store) TouchProxyTokens(ctx context.Context, hashes [][sha256.Size]byte, at time.Time) error {
	when := model.At(at)
	for some := range slices.Chunk(hashes, batchSize) {
		texts := make([]any, len(some))
		for i, hash := range some {
			texts[i] = hex.EncodeToString(hash[:])
		}
		err := s.w.WithContext(ctx).Model(&proxyToken{}).Where(clause.IN{Column: "hash", Values: texts}).
			Where("last_used_ts IS NULL OR last_used_ts < ?", when).Update("last_used_ts", when).Error
		if err != nil {
			return s.fail(ctx, "noting the use of tokens of proxies", err)
		}
	}
	return nil
}

// HasProxyTokens implements store.ProxyTokens.
func (s *Store) HasProxyTokens(ctx context.Context) (bool, error) {
	var found bool
	err := s.viewIn(ctx, s.access, func(r *reader) error {
		return r.fail("looking for tokens of proxies", r.db().Raw("SELECT EXISTS (SELECT 1 FROM proxy_token)").Row().Scan(&found))
	})
	return found, err
}
