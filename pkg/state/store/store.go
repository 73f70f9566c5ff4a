package store

import (
	"context"
	"iter"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Store keeps the configuration. It is safe for concurrent use. An error is a
// *model.Error of kind Unavailable if the database does not answer.
type Store interface {
	Source

	// Read runs fn on one consistent view of the configuration.
	Read(ctx context.Context, fn func(Reader) error) error

	// Write runs fn in one transaction. If fn changed something, that becomes the next
	// revision, which is returned; otherwise the current one is. If fn returns an
	// error, nothing is stored and the error is returned unchanged.
	Write(ctx context.Context, origin Origin, fn func(Writer) error) (revision int64, err error)

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error

	// Run does the store's own work until ctx ends: it receives the changes of other
	// processes and compacts the change log.
	Run(ctx context.Context) error

	// Close releases the database.
	Close() error
}

// Source is what the build loop reads.
type Source interface {
	// Since returns what changed after a revision: the entries of the change log if it
	// still has them, otherwise (and for the zero Mark) everything.
	Since(ctx context.Context, at model.Mark) (model.Change, error)

	// Changed receives after a change was committed, here or, if the database is
	// shared, in another process. It has capacity 1 and carries no data; the reader
	// calls Since. It has one reader.
	Changed() <-chan struct{}
}

// Origin says where a write comes from; the change log keeps it.
type Origin struct {
	// Actor is who wrote, for example "api" or "standalone".
	Actor string
	// Request is what was called, for example "POST /upstream".
	Request string
	// Message says why, in words of who wrote; empty means that nobody said so.
	Message string
}

// Reader reads one consistent view.
type Reader interface {
	// Revision is the revision of this view.
	Revision() (int64, error)
	// Mark is Revision with its ID; within a transaction that writes, it is the
	// previous revision.
	Mark() (model.Mark, error)
	// Get returns one object, or a NotFound error.
	Get(key model.Key) (model.Object, error)
	// List returns objects of one kind, oldest first.
	List(q Query) ([]model.Object, error)
	// Revisions returns the revisions before one, newest first; before 0 means from the
	// newest. Compacted revisions are missing.
	Revisions(before int64, limit int) ([]Revision, error)
	// RevisionsOf is Revisions of those that q selects.
	RevisionsOf(q RevisionQuery, before int64, limit int) ([]Revision, error)
	// Entries returns what a revision changed; nothing for a revision that is not in
	// the change log.
	Entries(revision int64) Changes
	// Prefetch reads the objects with these keys together, so that a Writer need not
	// read each of them in Get. A Reader does nothing: it remembers nothing.
	Prefetch(keys []model.Key) error
	// ServicesOf returns the services that have a host, oldest first. Case does not
	// matter.
	ServicesOf(host string) ([]*model.Service, error)
	// PortedServices returns the services with a port of their own, oldest first.
	PortedServices() ([]*model.Service, error)
	// PrefetchHosts does for ServicesOf what Prefetch does for Get.
	PrefetchHosts(hosts []string) error
}

// RevisionQuery selects revisions. A zero field does not restrict. Object and Kind restrict to revisions with an entry
// that has both.
type RevisionQuery struct {
	// Object is what they changed: itself, a part of it or what is attached to it.
	Object model.Key
	// Kind is that of an object or link that they changed.
	Kind model.Kind
	// Actor is who made them.
	Actor string
	// Since is the time of the first one.
	Since model.Time
}

// Revision is one transaction of the change log.
type Revision struct {
	Revision int64      `json:"revision"`
	At       model.Time `json:"at"`
	Actor    string     `json:"actor"`
	Request  string     `json:"request"`
	// Message says why; empty means that nobody said so.
	Message string `json:"message,omitempty"`
	// Changes is the number of objects and links that it changed.
	Changes int `json:"changes"`
}

// Written is one object before and after a change; nil means that it did not exist, or
// no longer exists.
type Written struct {
	Key           model.Key
	Before, After model.Object
}

// Changes yields changes in their order: those of the given kinds or, without kinds,
// all. They are read in pages: an error may end the sequence, and it is valid only
// until the transaction ends.
type Changes func(kinds ...model.Kind) iter.Seq2[Written, error]

// ChangesOf yields the changes of a list.
func ChangesOf(list []Written) Changes {
	return func(kinds ...model.Kind) iter.Seq2[Written, error] {
		return func(yield func(Written, error) bool) {
			for _, w := range list {
				if len(kinds) > 0 && !slices.Contains(kinds, w.Key.Kind) {
					continue
				}
				if !yield(w, nil) {
					return
				}
			}
		}
	}
}

// Count says how many objects a transaction has changed.
type Count struct{ Created, Updated, Deleted int }

// Total is all of them.
func (c Count) Total() int { return c.Created + c.Updated + c.Deleted }

// LogPosition is the position of an entry in the change log.
type LogPosition struct {
	Revision int64
	Seq      int32
	// Kept says that its object existed before the entry and after every later one.
	Kept bool
}

// Query selects objects of one kind. A zero field does not restrict.
type Query struct {
	Kind model.Kind
	// To restricts to objects that refer to one of these objects, which are of one
	// kind: what they own, the links that attach them, and what names them in a field.
	To []model.Key
	// Names restricts kinds that have a name of their own. Case matters. Routes are not
	// distinguished by service.
	Names []string
	// Tag restricts kinds that carry tags to objects with this one.
	Tag string
	// NamePrefix restricts kinds that have a name of their own. Case matters.
	NamePrefix string
	// EndsBefore restricts secrets to those whose certificate expires before.
	EndsBefore model.Time
	// After is the ID after which to start.
	After int64
	// ByName orders by the names that make the key, by byte; without it the oldest
	// comes first. AfterName is the name after which to start; it is for kinds with a
	// name of their own.
	ByName    bool
	AfterName string
	// Limit is the maximum number of objects to return; 0 means all.
	Limit int
}

// Writer changes the configuration within a transaction. Its methods work on plain
// rows; Create and Delete of this package apply the rules between objects.
type Writer interface {
	Reader
	// Insert stores a new object and sets its timestamps. It sets its ID at the end of
	// the transaction at the latest: rows may be sent together. A taken key is an
	// Exists error. Confidential values are sealed first; that may be refused as
	// Invalid.
	Insert(obj model.Object) error
	// Replace stores obj in place of the object with the same key and sets its ID and
	// timestamps; rows may be sent together. An object that is equal except for those
	// changes nothing. An unknown key is a NotFound error.
	Replace(obj model.Object) error
	// Remove deletes one object. An unknown key is a NotFound error.
	Remove(key model.Key) error
	// RemoveAll is Remove for many objects of one kind.
	RemoveAll(keys []model.Key) error
	// Restore is Insert for an object that existed before: it keeps its ID and time of
	// creation.
	Restore(obj model.Object) error
	// Warn records what a rule has changed in an object, which its writer may not
	// expect.
	Warn(text string)
	// Warnings returns the recorded warnings.
	Warnings() []string
	// Written returns what this transaction has changed so far. New objects in it may
	// have no ID yet.
	Written() Changes
	// Count counts what Written yields.
	Count() Count
	// ChangedSince returns, of some objects, those that were changed after a mark, each with the last
	// revision that did. known reports whether the database was ever at the mark; without that, there
	// is nothing to compare. If the change log does not reach back, the error is Compacted.
	ChangedSince(at model.Mark, keys map[model.Key]bool) (changed map[model.Key]Revision, known bool, err error)
	// FirstEntries returns, by kind and in order, the place of the first entry of each
	// object that was changed after a revision: that entry has the object as it was at
	// that revision. If the change log does not reach back, the error is Compacted.
	FirstEntries(revision int64) (map[model.Kind][]LogPosition, error)
	// ObjectsBefore returns the objects as they were before some entries of the change
	// log, in the order of the entries. Object is nil if there was none.
	ObjectsBefore(places []LogPosition) ([]model.Entry, error)
}
