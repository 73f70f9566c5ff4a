package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ store.Sessions = (*Store)(nil)

// session is a row of the table of sessions.
type session struct {
	Hash, Header, Token      string
	Issuer, Actor, UserGroup string
	CreateTS, EndTS          model.Time
}

// CreateSession implements store.Sessions.
func (s *Store) CreateSession(ctx context.Context, n store.Session, keep int) error {
	row := session{
		Hash: hex.EncodeToString(n.Hash[:]), Header: hex.EncodeToString(n.Header[:]), Token: hex.EncodeToString(n.Token[:]),
		Issuer: n.User.Issuer, Actor: n.User.Actor, UserGroup: n.User.Group, CreateTS: n.CreateTS, EndTS: n.EndTS,
	}
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		if _, err := s.lockWriters(tx); err != nil { // two that begin together must count each other
			return err
		}
		err := tx.Where("end_ts <= ?", n.CreateTS).Delete(&session{}).Error
		if err == nil {
			err = tx.Create(&row).Error
		}
		if err == nil {
			newest := tx.Model(&session{}).Select("hash").Where("token = ?", row.Token).Order("create_ts DESC, hash").Limit(keep)
			err = tx.Where("token = ? AND hash NOT IN (?)", row.Token, newest).Delete(&session{}).Error
		}
		return s.fail(ctx, "storing a session", err)
	})
}

// Session implements store.Sessions.
func (s *Store) Session(ctx context.Context, hash [sha256.Size]byte) (found store.Session, err error) {
	var row session
	err = s.viewIn(ctx, s.access, func(r *reader) error {
		err := r.db().Where("hash = ?", hex.EncodeToString(hash[:])).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return &model.Error{Kind: model.NotFound, Message: "the session does not exist"}
		}
		return r.fail("looking up a session", err)
	})
	if err != nil {
		return store.Session{}, err
	}
	found = store.Session{Hash: hash, User: store.User{Issuer: row.Issuer, Actor: row.Actor, Group: row.UserGroup}, CreateTS: row.CreateTS, EndTS: row.EndTS}
	return found, errors.Join(decodeHash("of a session", row.Header, &found.Header), decodeHash("of a session", row.Token, &found.Token))
}

// DeleteSession implements store.Sessions.
func (s *Store) DeleteSession(ctx context.Context, hash [sha256.Size]byte) error {
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		return s.fail(ctx, "ending a session", tx.Where("hash = ?", hex.EncodeToString(hash[:])).Delete(&session{}).Error)
	})
}

// dropSessions ends all sessions.
func (s *Store) dropSessions(ctx context.Context) error {
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		return s.fail(ctx, "ending all sessions", tx.Where("1 = 1").Delete(&session{}).Error)
	})
}
