package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ store.AutomaticCertificates = (*Store)(nil)

const (
	// automaticChannel announces changes of automatic certificates within a database.
	automaticChannel = "gatehouse_automatic"
	// automaticVersion is the note with the last version. Its row also makes writers wait for each other, so that a reader
	// never sees a version before an earlier one.
	automaticVersion = "automatic_version"
	// keptDeletions is for how many versions a deletion is remembered for readers that have not seen it.
	keptDeletions = 100_000
)

// automaticCertificate is a row of the table.
type automaticCertificate struct {
	Host        string
	Cert        string
	PrivateKey  string
	OrderKey    string
	State       string
	Asked, Gone int64
	Version     int64
}

// AutomaticSince implements store.AutomaticCertificates.
func (s *Store) AutomaticSince(ctx context.Context, version int64) (changed []store.Automatic, now int64, full bool, err error) {
	err = s.viewIn(ctx, s.build, func(r *reader) error {
		var text string
		err := r.db().Raw("SELECT text FROM note WHERE name = ?", automaticVersion).Row().Scan(&text)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return r.fail("looking for automatic certificates", err)
		}
		now, _ = strconv.ParseInt(text, 10, 64) // no note: nothing was ever written
		if now == version {
			return nil
		}
		full = version == 0 || now < version
		if full {
			version = 0
		}
		var rows []automaticCertificate
		if err := r.db().Where("version > ?", version).Order("version").Find(&rows).Error; err != nil {
			return r.fail("reading automatic certificates", err)
		}
		for _, row := range rows {
			changed = append(changed, store.Automatic{
				Host: row.Host, Cert: row.Cert, Key: row.PrivateKey,
				OrderKey: row.OrderKey, State: row.State, Asked: row.Asked, Gone: row.Gone != 0,
			})
		}
		return nil
	})
	return changed, now, full, err
}

// SaveAutomatic implements store.AutomaticCertificates.
func (s *Store) SaveAutomatic(ctx context.Context, holder string, a *store.Automatic) error {
	return s.writeAutomatic(ctx, holder, func(tx *gorm.DB, sealer model.Sealer, version int64) error {
		key, err := sealNewest(sealer, a.Key, a.Secret().KeyPlace())
		if err != nil {
			return err
		}
		order, err := sealNewest(sealer, a.OrderKey, a.OrderPlace())
		if err != nil {
			return err
		}
		err = tx.Exec(`INSERT INTO automatic_certificate (host, cert, private_key, order_key, state, version)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (host) DO UPDATE SET cert = excluded.cert,
	private_key = excluded.private_key, order_key = excluded.order_key, state = excluded.state, gone = 0, version = excluded.version`,
			a.Host, a.Cert, key, order, a.State, version).Error
		a.Key, a.OrderKey = key, order
		return s.fail(ctx, "storing an automatic certificate", err)
	})
}

// sealNewest seals a text. One that is sealed may be so with a key that was replaced meanwhile.
func sealNewest(sealer model.Sealer, text, place string) (string, error) {
	if text == "" {
		return "", nil
	}
	if model.IsSealed(text) {
		var err error
		if text, err = sealer.Unseal(text, place); err != nil {
			return "", err
		}
	}
	return sealer.Seal(text, place)
}

// DeleteAutomatic implements store.AutomaticCertificates.
func (s *Store) DeleteAutomatic(ctx context.Context, holder, host string) error {
	return s.writeAutomatic(ctx, holder, func(tx *gorm.DB, _ model.Sealer, version int64) error {
		err := tx.Exec(`UPDATE automatic_certificate SET cert = '', private_key = '', order_key = '', state = '', asked = 0, gone = 1,
	version = ? WHERE host = ?`, version, host).Error
		if err == nil {
			err = tx.Exec("DELETE FROM automatic_certificate WHERE gone = 1 AND version < ?", version-keptDeletions).Error
		}
		return s.fail(ctx, "deleting an automatic certificate", err)
	})
}

// AskAutomatic implements store.AutomaticCertificates.
func (s *Store) AskAutomatic(ctx context.Context, host string) error {
	return s.writeAutomatic(ctx, "", func(tx *gorm.DB, _ model.Sealer, version int64) error {
		done := tx.Exec("UPDATE automatic_certificate SET asked = asked + 1, version = ? WHERE host = ? AND gone = 0",
			version, host)
		if done.Error == nil && done.RowsAffected == 0 {
			return &model.Error{
				Kind: model.NotFound, Message: "the gateway has not begun to order a certificate for " + host,
				Hint: "GET /certificate lists what is ordered",
			}
		}
		return s.fail(ctx, "asking for a certificate", done.Error)
	})
}

// Account implements store.AutomaticCertificates.
func (s *Store) Account(ctx context.Context, id string) (*store.Account, error) {
	a := &store.Account{ID: id}
	err := s.view(ctx, func(r *reader) error {
		err := r.db().Raw("SELECT url, private_key FROM automatic_account WHERE id = ?", id).Row().Scan(&a.URL, &a.Key)
		if errors.Is(err, sql.ErrNoRows) {
			a = nil
			return nil
		}
		return r.fail("reading an account", err)
	})
	return a, err
}

// SaveAccount implements store.AutomaticCertificates.
func (s *Store) SaveAccount(ctx context.Context, holder string, a *store.Account) error {
	return s.writeAutomatic(ctx, holder, func(tx *gorm.DB, sealer model.Sealer, _ int64) error {
		sealed, err := sealNewest(sealer, a.Key, a.Place())
		if err != nil {
			return err
		}
		a.Key = sealed
		return s.fail(ctx, "storing an account", tx.Exec(`INSERT INTO automatic_account (id, url, private_key) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET url = excluded.url, private_key = excluded.private_key`, a.ID, a.URL, a.Key).Error)
	})
}

// Holds implements store.AutomaticCertificates.
func (s *Store) Holds(ctx context.Context) (map[string]time.Time, error) {
	holds := map[string]time.Time{}
	err := s.view(ctx, func(r *reader) error {
		var rows []struct {
			ID   string
			Ends int64
		}
		if err := r.db().Raw("SELECT id, ends FROM automatic_hold").Scan(&rows).Error; err != nil {
			return r.fail("reading limits of authorities", err)
		}
		for _, row := range rows {
			holds[row.ID] = time.UnixMilli(row.Ends)
		}
		return nil
	})
	return holds, err
}

// SaveHold implements store.AutomaticCertificates.
func (s *Store) SaveHold(ctx context.Context, holder, id string, until, now time.Time) error {
	return s.writeAutomatic(ctx, holder, func(tx *gorm.DB, _ model.Sealer, _ int64) error {
		err := tx.Exec("DELETE FROM automatic_hold WHERE ends <= ?", now.UnixMilli()).Error
		if err == nil {
			err = tx.Exec(`INSERT INTO automatic_hold (id, ends) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET ends = CASE WHEN automatic_hold.ends < excluded.ends THEN excluded.ends ELSE automatic_hold.ends END`,
				id, until.UnixMilli()).Error
		}
		return s.fail(ctx, "storing a limit of an authority", err)
	})
}

// writeAutomatic runs fn with the next version, unless another replica than holder has the lease; an empty holder needs
// none.
func (s *Store) writeAutomatic(
	ctx context.Context, holder string, fn func(tx *gorm.DB, sealer model.Sealer, version int64) error,
) error {
	err := s.transact(ctx, s.w, nil, func(tx *gorm.DB, step func()) error {
		var text string
		err := tx.Raw("UPDATE note SET text = CAST(CAST(text AS BIGINT) + 1 AS TEXT) WHERE name = ? RETURNING text", automaticVersion).
			Row().Scan(&text)
		if err != nil {
			return s.fail(ctx, "counting changes of automatic certificates", err)
		}
		if holder != "" && s.board != nil {
			var holds bool
			err := tx.Raw("SELECT holder = ? AND ends > "+databaseMS+" FROM automatic_lease WHERE id = 1 FOR UPDATE", holder).Row().Scan(&holds)
			if err != nil {
				return s.fail(ctx, "reading who orders certificates", err)
			}
			if !holds {
				return &model.Error{Kind: model.Conflict, Message: "another replica orders certificates now"}
			}
		}
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return s.fail(ctx, "counting changes of automatic certificates", err)
		}
		w := newWriter(reader{store: s, tx: tx, step: step}, store.Origin{})
		if err := fn(tx, checkedSealer{w}, version); err != nil {
			return err
		}
		if s.board == nil {
			return nil
		}
		return s.fail(ctx, "telling other replicas of a certificate", tx.Exec("SELECT pg_notify(?, '')", automaticChannel).Error)
	})
	if err == nil {
		s.signalAutomatic()
	}
	return err
}

// databaseMS is the clock of PostgreSQL in milliseconds.
const databaseMS = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"

// HoldLease implements store.AutomaticCertificates. An SQLite file has one server.
func (s *Store) HoldLease(ctx context.Context, holder string, lasts time.Duration) (held bool, err error) {
	if s.board == nil {
		return true, nil
	}
	err = s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		done := tx.Exec("UPDATE automatic_lease SET holder = ?, ends = "+databaseMS+" + ? WHERE id = 1 AND (holder = ? OR ends < "+databaseMS+")",
			holder, lasts.Milliseconds(), holder)
		held = done.RowsAffected == 1
		return s.fail(ctx, "taking the lease for orders", done.Error)
	})
	return held && err == nil, err
}

// AutomaticChanged implements store.AutomaticCertificates.
func (s *Store) AutomaticChanged() <-chan struct{} { return s.automaticChanged }

func (s *Store) signalAutomatic() {
	select {
	case s.automaticChanged <- struct{}{}:
	default: // the reader has not looked yet
	}
}

// automatic seals the keys of automatic certificates and of accounts again.
func (r *resealer) automatic() error {
	var rows []automaticCertificate
	if err := r.db().Where("gone = 0").Find(&rows).Error; err != nil {
		return r.fail("reading automatic certificates", err)
	}
	for _, row := range rows {
		a := store.Automatic{Host: row.Host, Key: row.PrivateKey, OrderKey: row.OrderKey}
		secret := a.Secret()
		err := secret.MapSealed(r.again)
		if err == nil && a.OrderKey != "" {
			a.OrderKey, err = r.again(a.OrderKey, a.OrderPlace())
		}
		if err != nil {
			return resealError(model.NewKey("certificate", row.Host), "it", err)
		}
		err = r.db().Exec("UPDATE automatic_certificate SET private_key = ?, order_key = ? WHERE host = ?",
			secret.PrivateKey, a.OrderKey, a.Host).Error
		if err != nil {
			return r.fail("sealing automatic certificates again", err)
		}
	}
	var accounts []store.Account
	err := r.db().Raw("SELECT id, url, private_key AS key FROM automatic_account").Scan(&accounts).Error
	if err != nil {
		return r.fail("reading accounts", err)
	}
	for _, a := range accounts {
		if a.Key, err = r.again(a.Key, a.Place()); err != nil {
			return resealError(model.NewKey("account", a.ID), "it", err)
		}
		if err := r.db().Exec("UPDATE automatic_account SET private_key = ? WHERE id = ?", a.Key, a.ID).Error; err != nil {
			return r.fail("sealing accounts again", err)
		}
	}
	return nil
}

// again seals a text again, and counts it if that changed it.
func (r *resealer) again(sealed, place string) (string, error) {
	sealer := r.store.opts.Sealer
	plain, err := sealer.Unseal(sealed, place)
	if err != nil {
		return "", err
	}
	again, err := sealer.Seal(plain, place)
	if again != sealed {
		r.done.Current++
	}
	return again, err
}
