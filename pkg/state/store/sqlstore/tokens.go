package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ store.Tokens = (*Store)(nil)

// token is a row of the table of tokens.
type token struct {
	Name, Role, Hash string
	// Tags, Hosts and Ports are words with spaces between them.
	Tags, Hosts, Ports string
	MaxObjects         int
	CreateTS           model.Time
	LastUsedTS         sql.NullTime
}

func (t token) model() (store.Token, error) {
	out := store.Token{Name: t.Name, Role: t.Role, CreateTS: t.CreateTS}
	if t.LastUsedTS.Valid {
		out.LastUsedTS = model.At(t.LastUsedTS.Time)
	}
	// Where something is damaged, the team may do less.
	out.Team = store.Team{Tags: words(t.Tags), Hosts: words(t.Hosts), MaxObjects: t.MaxObjects}
	for _, text := range words(t.Ports) {
		if port, err := strconv.Atoi(text); err == nil {
			out.Team.Ports = append(out.Team.Ports, port)
		}
	}
	return out, decodeHash(t.Name, t.Hash, &out.Hash)
}

// words returns the words of a text; nil for none.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

// decodeHash reads the hash of the token with that name.
func decodeHash(name, text string, to *[sha256.Size]byte) error {
	if n, err := hex.Decode(to[:], []byte(text)); err != nil || n != len(to) {
		return fmt.Errorf("reading token %q: its hash is damaged", name)
	}
	return nil
}

// CreateToken implements store.Tokens.
func (s *Store) CreateToken(ctx context.Context, t store.Token) error {
	row := token{Name: t.Name, Role: t.Role, Hash: hex.EncodeToString(t.Hash[:]), CreateTS: t.CreateTS}
	row.Tags, row.Hosts = strings.Join(t.Team.Tags, " "), strings.Join(t.Team.Hosts, " ")
	row.Ports, row.MaxObjects = strings.Trim(fmt.Sprint(t.Team.Ports), "[]"), t.Team.MaxObjects
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		err := tx.Create(&row).Error
		if err != nil && classify(err) == classDuplicate {
			return tokenExists(tokenPath(t.Name), fmt.Sprintf("token %q", t.Name))
		}
		return s.fail(ctx, "storing a token", err)
	})
}

// Tokens implements store.Tokens.
func (s *Store) Tokens(ctx context.Context) ([]store.Token, error) {
	var rows []token
	err := s.view(ctx, func(r *reader) error {
		return r.fail("listing the tokens", r.db().Order("name").Find(&rows).Error)
	})
	if err != nil {
		return nil, err
	}
	list := make([]store.Token, len(rows))
	for i, row := range rows {
		if list[i], err = row.model(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// TokenByHash implements store.Tokens.
func (s *Store) TokenByHash(ctx context.Context, hash [sha256.Size]byte) (store.Token, error) {
	return s.oneToken(ctx, "hash = ?", hex.EncodeToString(hash[:]))
}

// TokenByName implements store.Tokens.
func (s *Store) TokenByName(ctx context.Context, name string) (store.Token, error) {
	return s.oneToken(ctx, "name = ?", name)
}

func (s *Store) oneToken(ctx context.Context, where, value string) (store.Token, error) {
	var row token
	err := s.viewIn(ctx, s.access, func(r *reader) error {
		err := r.db().Where(where, value).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return &model.Error{Kind: model.NotFound, Message: "the token does not exist"}
		}
		return r.fail("looking up a token", err)
	})
	if err != nil {
		return store.Token{}, err
	}
	return row.model()
}

// DeleteToken implements store.Tokens.
func (s *Store) DeleteToken(ctx context.Context, name string, keepAdmin bool) error {
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		// Two calls that delete each other's token must see one another.
		if _, err := s.lockWriters(tx); err != nil {
			return err
		}
		var row token
		err := gorm.ErrRecordNotFound
		if isStorable(name) {
			err = tx.Where("name = ?", name).Take(&row).Error
		}
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return &model.Error{Kind: model.NotFound, Path: tokenPath(name), Message: fmt.Sprintf("token %q does not exist", name)}
		}
		if err != nil {
			return s.fail(ctx, "looking up a token", err)
		}
		if keepAdmin && row.Role == store.RoleAdmin {
			var admins int64
			if err := tx.Model(&token{}).Where("role = ?", store.RoleAdmin).Count(&admins).Error; err != nil {
				return s.fail(ctx, "counting tokens", err)
			}
			if admins == 1 {
				return &model.Error{
					Kind: model.Conflict, Path: tokenPath(name), Message: fmt.Sprintf("token %q is the last one of an admin", name),
					Hint: "without it nobody could change anything; create another admin token first, or delete it in the database: gatehouse token revoke with --data-dir or --database-url",
				}
			}
		}
		return s.fail(ctx, "deleting a token", tx.Where("name = ?", name).Delete(&token{}).Error)
	})
}

// TouchToken implements store.Tokens.
func (s *Store) TouchToken(ctx context.Context, name string, at time.Time) error {
	when := model.At(at)
	err := s.w.WithContext(ctx).Model(&token{}).Where("name = ?", name).
		Where("last_used_ts IS NULL OR last_used_ts < ?", when).Update("last_used_ts", when).Error
	return s.fail(ctx, "noting the use of a token", err)
}

// HasTokens implements store.Tokens.
func (s *Store) HasTokens(ctx context.Context) (bool, error) {
	var found bool
	err := s.viewIn(ctx, s.access, func(r *reader) error {
		return r.fail("looking for tokens", r.db().Raw("SELECT EXISTS (SELECT 1 FROM token)").Row().Scan(&found))
	})
	return found, err
}

func tokenExists(path, what string) error {
	return &model.Error{
		Kind: model.Exists, Path: path, Message: what + " already exists", Hint: "choose another name, or delete the existing one first",
	}
}

func tokenPath(name string) string { return "/token/" + name }
