package store

import (
	"context"
	"iter"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Store keeps the configuration. It is safe for use by many goroutines. An
// error is a *model.Error of kind Unavailable when the database is away.
type Store interface {
	Source

	// Read runs fn on one consistent view of the configuration.
	Read(ctx context.Context, fn func(Reader) error) error

	// Write runs fn in one transaction. When fn changed something, it becomes
	// the next revision, which is returned; else the current one is. When fn
	// returns an error nothing is stored and that error comes back unchanged.
	Write(ctx context.Context, origin Origin, fn func(Writer) error) (revision int64, err error)

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error

	// Run does the store's own work until ctx ends: it hears of the changes of
	// other processes and compacts the change log.
	Run(ctx context.Context) error

	// Close releases the database.
	Close() error
}

// Source is what the build loop reads.
type Source interface {
	// Since returns what changed after a revision: the entries of the change log
	// where it still holds them, else (and for the zero Mark) everything.
	Since(ctx context.Context, at model.Mark) (model.Change, error)

	// Changed receives after a change was committed, here or, where the
	// database is shared, in another process. It has capacity 1 and carries
	// nothing; the reader asks Since. It has one reader.
	Changed() <-chan struct{}
}

// Origin says where a write comes from; it is kept in the change log.
type Origin struct {
	// Actor is who, for example "api" or "standalone".
	Actor string
	// Request is what, for example "POST /upstream".
	Request string
}

// Reader reads one consistent view.
type Reader interface {
	// Revision is the revision of this view.
	Revision() (int64, error)
	// Mark is Revision with its ID; within a transaction that writes, that of the
	// revision before.
	Mark() (model.Mark, error)
	// Get returns one object, or a NotFound error.
	Get(key model.Key) (model.Object, error)
	// List returns objects of one kind, oldest first.
	List(q Query) ([]model.Object, error)
	// Revisions returns the revisions before one, newest first; before 0 means
	// from the newest on. Those that were compacted away are not there.
	Revisions(before int64, limit int) ([]Revision, error)
	// Entries are what a revision changed; none for one that is not in the
	// change log.
	Entries(revision int64) Changes
	// Prefetch reads the objects with these keys together, so that a Writer need
	// not ask for each of them in Get. A Reader remembers nothing and does nothing.
	Prefetch(keys []model.Key) error
	// ServicesOf returns the services that have a host, oldest first, without regard
	// to case.
	ServicesOf(host string) ([]*model.Service, error)
	// PrefetchHosts does for ServicesOf what Prefetch does for Get.
	PrefetchHosts(hosts []string) error
}

// Revision is one transaction of the change log.
type Revision struct {
	Revision int64      `json:"revision"`
	At       model.Time `json:"at"`
	Actor    string     `json:"actor"`
	Request  string     `json:"request"`
	// Changes is the number of objects and links that it changed.
	Changes int `json:"changes"`
}

// Written is one object before and after a change; nil means that it was not,
// or is no longer, there.
type Written struct {
	Key           model.Key
	Before, After model.Object
}

// Changes yields changes in their order, those of some kinds or, where none is
// named, all. Many are read in pages, so that an error may
// end them, and only until the transaction ends.
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

// Place is where an entry of the change log stands.
type Place struct {
	Revision int64
	Seq      int32
	// Kept says that its object was there before and behind every later entry.
	Kept bool
}

// Query selects objects of one kind. A zero field does not restrict.
type Query struct {
	Kind model.Kind
	// To restricts to objects that refer to one of these, which are of one kind:
	// to what they own, to the links that attach them, to what names them in a field.
	To []model.Key
	// Names restricts kinds that have a name of their own, with regard to case;
	// routes it does not tell by service.
	Names []string
	// Tag restricts kinds that carry tags to objects with this one.
	Tag string
	// NamePrefix restricts kinds that have a name of their own, with regard to
	// case.
	NamePrefix string
	// EndsBefore restricts secrets to those whose certificate ends before.
	EndsBefore model.Time
	// After is the ID behind which to start.
	After int64
	// ByName orders by the names that make the key, by byte, where otherwise
	// the oldest comes first. AfterName is the name behind which to start; it
	// is for kinds with a name of their own.
	ByName    bool
	AfterName string
	// Limit is the most objects to return; 0 means all.
	Limit int
}

// Writer changes the configuration within a transaction. Its methods are
// plain rows; the rules between objects are Create and Delete of this package.
type Writer interface {
	Reader
	// Insert stores a new object and sets its timestamps, and its ID at the
	// latest when the transaction ends: rows may be sent together. A taken key
	// is an Exists error. What is confidential in it is sealed first; that may
	// be refused as Invalid.
	Insert(obj model.Object) error
	// Replace stores obj in place of the object of the same key and sets its
	// ID and timestamps; rows may be sent together. An object that is equal but
	// for those changes nothing. An unknown key is a NotFound error.
	Replace(obj model.Object) error
	// Remove deletes one object. An unknown key is a NotFound error.
	Remove(key model.Key) error
	// RemoveAll is Remove for many objects of one kind.
	RemoveAll(keys []model.Key) error
	// Restore is Insert for an object that was there before: it keeps its ID
	// and time of creation.
	Restore(obj model.Object) error
	// Warn notes what a rule has made of an object, which its writer may not expect.
	Warn(text string)
	// Warnings are what was noted.
	Warnings() []string
	// Written is what this transaction has changed so far. New objects in it may
	// have no ID yet.
	Written() Changes
	// Count counts what Written yields.
	Count() Count
	// FirstEntries returns, by kind, where the first entry of each object that was
	// changed after a revision stands, in order: it found what the object was at
	// that revision. A change log that does not reach back is a Compacted error.
	FirstEntries(revision int64) (map[model.Kind][]Place, error)
	// ObjectsBefore returns what some entries of the change log found, in their order.
	// Object is nil if there was none.
	ObjectsBefore(places []Place) ([]model.Entry, error)
}
