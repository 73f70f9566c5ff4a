package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// resealPage is how many rows Reseal keeps in memory.
const resealPage = 200

var _ store.Resealer = (*Store)(nil)

// Reseal implements store.Resealer.
func (s *Store) Reseal(ctx context.Context) (store.Resealed, error) {
	var done store.Resealed
	err := s.transact(ctx, s.w, nil, func(tx *gorm.DB, step func()) error {
		done = store.Resealed{}
		// The check text is written after everything that other writers have sealed.
		if _, err := s.lockWriters(tx); err != nil {
			return err
		}
		r := resealer{reader: reader{store: s, tx: tx, step: step}, done: &done}
		for _, kind := range model.Kinds() {
			if _, ok := model.New(kind).(model.Confidential); !ok {
				continue
			}
			if err := r.objects(kind); err != nil {
				return err
			}
		}
		if err := r.automatic(); err != nil {
			return err
		}
		if err := r.changeLog(); err != nil {
			return err
		}
		return r.check()
	})
	if err != nil {
		return store.Resealed{}, err
	}
	return done, nil
}

// resealer is one run of Reseal.
type resealer struct {
	reader
	done *store.Resealed
}

func (r *resealer) objects(kind model.Kind) error {
	for after := int64(0); ; {
		list, err := r.List(store.Query{Kind: kind, After: after, Limit: resealPage})
		if err != nil || len(list) == 0 {
			return err
		}
		for _, obj := range list {
			after = *obj.Meta().ID
			changed, err := r.reseal(obj)
			if err != nil {
				return resealError(obj.Key(), "it", err)
			}
			r.done.Current += changed
			if changed == 0 {
				continue
			}
			if err := r.db().Select("*").Updates(obj).Error; err != nil {
				return r.fail("sealing "+obj.Key().Path()+" again", err)
			}
		}
	}
}

func (r *resealer) changeLog() error {
	const sealed = "%" + model.SealedPrefix + "%"
	for last := (changeLog{}); ; {
		var rows []changeLog
		err := r.db().Select("revision", "seq", "kind", "name", "before", "after").
			Where("(revision, seq) > (?, ?)", last.Revision, last.Seq).Where("before LIKE ? OR after LIKE ?", sealed, sealed).
			Order("revision, seq").Limit(resealPage).Find(&rows).Error
		if err != nil {
			return r.fail("reading the change log", err)
		}
		if len(rows) == 0 {
			return nil
		}
		for _, row := range rows {
			if err := r.entry(row); err != nil {
				return err
			}
		}
		last = rows[len(rows)-1]
	}
}

func (r *resealer) entry(row changeLog) error {
	key := row.key()
	if _, known := r.store.tables[row.Kind]; !known {
		return &model.Error{
			Kind: model.Conflict, Path: key.Path(), Message: fmt.Sprintf("revision %d has secrets of the unknown kind %q", row.Revision, row.Kind),
			Hint: "a newer version of gatehouse wrote them; run the command of that version",
		}
	}
	changed := 0
	for _, text := range []**string{&row.Before, &row.After} {
		obj, err := decode(row, *text)
		if err != nil || obj == nil {
			if err != nil {
				return err
			}
			continue
		}
		n, err := r.reseal(obj)
		if err != nil {
			return resealError(key, fmt.Sprintf("revision %d", row.Revision), err)
		}
		if n == 0 {
			continue
		}
		changed += n
		b, err := json.Marshal(obj)
		if err != nil {
			return fmt.Errorf("writing %s %q to the change log: %w", row.Kind, row.Name, err)
		}
		*text = new(string(b))
	}
	r.done.Logged += changed
	if changed == 0 {
		return nil
	}
	err := r.db().Exec("UPDATE change_log SET before = ?, after = ? WHERE revision = ? AND seq = ?", row.Before, row.After, row.Revision, row.Seq).Error
	return r.fail("writing the change log", err)
}

// reseal seals the texts of one object and returns how many have changed.
func (r *resealer) reseal(obj model.Object) (changed int, err error) {
	c, ok := obj.(model.Confidential)
	if !ok {
		return 0, nil
	}
	sealer := r.store.opts.Sealer
	err = c.MapSealed(func(sealed, place string) (string, error) {
		plain, err := sealer.Unseal(sealed, place)
		if err != nil {
			return "", err
		}
		again, err := sealer.Seal(plain, place)
		if again != sealed {
			changed++
		}
		return again, err
	})
	return changed, err
}

func (r *resealer) check() error {
	sealed, err := r.store.opts.Sealer.Seal(checkText, checkPlace)
	if err != nil {
		return err
	}
	return r.fail("writing the check text", r.db().Exec("UPDATE seal_check SET sealed = ?", sealed).Error)
}

// resealError says which text does not open; where is "it" for a current object.
func resealError(key model.Key, where string, err error) error {
	if !model.IsKind(err, model.Invalid) {
		return err
	}
	e := &model.Error{
		Kind: model.Conflict, Path: key.Path(), Err: err,
		Message: fmt.Sprintf("%s %q contains a value that no key opens, so nothing was sealed again", key.Kind, key.Text()),
		Hint:    "give it again, or delete it, then repeat this",
	}
	if where != "it" {
		e.Message = fmt.Sprintf("%s contains a value of %s %q that no key opens, so nothing was sealed again", where, key.Kind, key.Text())
		e.Hint = "bring the key back into the key file, or shorten the history with a smaller --revision-keep-entries, then repeat this"
	}
	return e
}
