package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// reader implements store.Reader in one transaction.
type reader struct {
	store *Store
	tx    *gorm.DB
	// step begins the next step of the transaction.
	step func()
}

// db is for the next statement of the transaction.
func (r *reader) db() *gorm.DB {
	r.step()
	return r.tx
}

// Revision implements store.Reader.
func (r *reader) Revision() (int64, error) {
	mark, err := r.Mark()
	return mark.Revision, err
}

// Mark implements store.Reader.
func (r *reader) Mark() (model.Mark, error) {
	mark, err := currentMark(r.db())
	return mark, r.fail("reading the revision", err)
}

func currentMark(tx *gorm.DB) (mark model.Mark, err error) {
	err = tx.Raw("SELECT revision, id FROM revision").Row().Scan(&mark.Revision, &mark.ID)
	return mark, err
}

// Get implements store.Reader.
func (r *reader) Get(key model.Key) (model.Object, error) {
	t, ok := r.store.tables[key.Kind]
	if !ok {
		return nil, fmt.Errorf("reading %s %q: no such kind", key.Kind, key.Text())
	}
	where := t.where(key)
	if where == nil {
		return nil, model.NotFoundError(key)
	}
	obj := model.New(key.Kind)
	err := r.db().Where(where).Take(obj).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return nil, model.NotFoundError(key)
	}
	if err != nil {
		return nil, r.fail(fmt.Sprintf("reading %s %q", key.Kind, key.Text()), err)
	}
	return obj, nil
}

// Prefetch implements store.Reader.
func (r *reader) Prefetch([]model.Key) error { return nil }

// PrefetchHosts implements store.Reader.
func (r *reader) PrefetchHosts([]string) error { return nil }

// ServicesOf implements store.Reader.
func (r *reader) ServicesOf(host string) ([]*model.Service, error) {
	return r.servicesOf([]string{strings.ToLower(host)}) // a host is ASCII
}

// servicesOf returns the services of hosts in lower case.
func (r *reader) servicesOf(hosts []string) (list []*model.Service, err error) {
	if !isStorable(strings.Join(hosts, "")) {
		return nil, nil
	}
	if err := r.db().Order("id").Where("lower(fqdn) IN ?", hosts).Find(&list).Error; err != nil {
		return nil, r.fail("listing the services of hosts", err)
	}
	return list, nil
}

// PortedServices implements store.Reader.
func (r *reader) PortedServices() (list []*model.Service, err error) {
	if err := r.db().Order("id").Where("port <> 0").Find(&list).Error; err != nil {
		return nil, r.fail("listing the services with a port", err)
	}
	return list, nil
}

// find returns the existing ones of some objects of one kind.
func (r *reader) find(kind model.Kind, keys []model.Key) ([]model.Object, error) {
	t, ok := r.store.tables[kind]
	if !ok {
		return nil, fmt.Errorf("reading %s: no such kind", kind)
	}
	condition, values := t.keyCondition(t.key, keys)
	if len(values) == 0 {
		return nil, nil
	}
	list, err := r.store.read(r.db().Where(condition, values...), t)
	return list, r.fail(fmt.Sprintf("reading %s", kind), err)
}

// List implements store.Reader.
func (r *reader) List(q store.Query) ([]model.Object, error) {
	t, ok := r.store.tables[q.Kind]
	if !ok {
		return nil, fmt.Errorf("listing kind %q: no such kind", q.Kind)
	}
	tx := r.db().Order("id")
	if q.ByName {
		tx = r.tx.Order(strings.Join(t.key, ", "))
	}
	if q.AfterName != "" {
		tx = tx.Where("name > ?", q.AfterName)
	}
	if q.After > 0 {
		tx = tx.Where("id > ?", q.After)
	}
	if q.Limit > 0 {
		tx = tx.Limit(q.Limit)
	}
	if len(q.Names) > 0 {
		tx = tx.Where("name IN ?", q.Names)
	}
	if len(q.To) > 0 {
		condition, values := t.refersTo(q.To)
		if len(values) == 0 {
			return nil, nil
		}
		tx = tx.Where(condition, values...)
	}
	if q.Tag != "" {
		// Tags are stored between spaces. Unlike LIKE, this means the same in both
		// databases and has no wildcards.
		tx = tx.Where("replace(tags, ?, '') <> tags", " "+q.Tag+" ")
	}
	if !q.EndsBefore.IsZero() {
		tx = tx.Where("not_after < ?", q.EndsBefore)
	}
	if q.NamePrefix != "" {
		tx = tx.Where("name >= ?", q.NamePrefix)
		if end := prefixEnd(q.NamePrefix); end != "" {
			tx = tx.Where("name < ?", end)
		}
	}
	if !isStorable(strings.Join(q.Names, "") + q.Tag + q.NamePrefix + q.AfterName) {
		return nil, nil
	}
	list, err := r.store.read(tx, t)
	return list, r.fail(fmt.Sprintf("listing %s", q.Kind), err)
}

// prefixEnd returns the first text after all that start with prefix, or "" if there is
// none. Both databases compare by byte, which for UTF-8 is by rune.
func prefixEnd(prefix string) string {
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		next := runes[i] + 1
		if next == 0xD800 { // surrogates are not runes
			next = 0xE000
		}
		if next <= utf8.MaxRune {
			return string(runes[:i]) + string(next)
		}
	}
	return ""
}

// isStorable reports whether a row can hold the text: Postgres refuses to compare with
// any other.
func isStorable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// fail makes a store error from an error in this transaction.
func (r *reader) fail(doing string, err error) error {
	return r.store.fail(r.context(), doing, err)
}

func (r *reader) context() context.Context { return r.tx.Statement.Context }
