package storetest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"github.com/onsi/gomega/types"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Settings configure the store of a spec; a zero field means the default.
type Settings struct {
	// KeepEntries and KeepAge bound the change log.
	KeepEntries int
	KeepAge     time.Duration
	// PollInterval is how often Run looks for changes of other processes.
	PollInterval time.Duration
	// Now is the store's clock.
	Now func() time.Time
	// Sealer seals secrets; nil means that there are none.
	Sealer model.Sealer
	// InUse opens a database that was opened with the Sealer before.
	InUse bool
}

// Open opens a database; each call opens the same one again.
type Open func(ctx context.Context, settings Settings) (store.Store, error)

// Specs registers the suite. newDatabase is called once per spec, for a database without
// objects; emptyDatabase is called for one that has not even tables.
func Specs(newDatabase, emptyDatabase func(ctx context.Context) Open) {
	h := &harness{emptyDatabase: emptyDatabase}
	Describe("as a store", func() {
		BeforeEach(func(ctx SpecContext) {
			before := gleak.Goroutines()
			DeferCleanup(func() {
				Eventually(gleak.Goroutines, "10s").ShouldNot(gleak.HaveLeaked(before))
			})
			h.openAgain = newDatabase(ctx)
			h.store, h.marks = h.open(ctx, Settings{}), map[int64]model.Mark{}
		})
		Describe("objects", func() { objectSpecs(h) })
		Describe("lists", func() { listSpecs(h) })
		Describe("the graph", func() { graphSpecs(h) })
		Describe("rules", func() { ruleSpecs(h) })
		Describe("revisions", func() { revisionSpecs(h) })
		Describe("the change feed", func() { changeSpecs(h) })
		Describe("compaction", func() { compactionSpecs(h) })
		Describe("a rollback", func() { rollbackSpecs(h) })
		Describe("a large transaction", func() { batchSpecs(h) })
		Describe("what exceeds a page", func() { pageSpecs(h) })
		Describe("concurrent processes", func() { concurrencySpecs(h) })
		Describe("tokens", func() { tokenSpecs(h) })
		Describe("tokens of proxies", func() { proxyTokenSpecs(h) })
		Describe("sessions", func() { sessionSpecs(h) })
		Describe("notes", func() { noteSpecs(h) })
		Describe("secrets", func() { secretSpecs(h) })
	})
}

// harness is what the specs share; each spec gets a new one.
type harness struct {
	emptyDatabase func(ctx context.Context) Open
	openAgain     Open
	store         store.Store
	// marks are the marks of the revisions that write has made.
	marks map[int64]model.Mark
}

// open opens the spec's database (again) and closes it when the spec ends.
func (h *harness) open(ctx context.Context, settings Settings) store.Store {
	GinkgoHelper()
	s, err := h.openAgain(ctx, settings)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.Close)
	return s
}

// origin is the origin of the suite's writes.
func origin() store.Origin { return store.Origin{Actor: "tester", Request: "POST /test"} }

// write runs fn in a transaction that must succeed.
func (h *harness) write(ctx context.Context, fn func(store.Writer) error) int64 {
	GinkgoHelper()
	revision, err := h.store.Write(ctx, origin(), fn)
	Expect(err).NotTo(HaveOccurred())
	h.marks[revision] = h.mark(ctx)
	return revision
}

// mark reads the current revision with its ID.
func (h *harness) mark(ctx context.Context) (mark model.Mark) {
	GinkgoHelper()
	Expect(h.store.Read(ctx, func(r store.Reader) (err error) {
		mark, err = r.Mark()
		return err
	})).To(Succeed())
	return mark
}

// create stores objects in one transaction.
func (h *harness) create(ctx context.Context, objs ...model.Object) int64 {
	GinkgoHelper()
	return h.write(ctx, func(w store.Writer) error { return createAll(w, objs...) })
}

func createAll(w store.Writer, objs ...model.Object) error {
	for _, obj := range objs {
		if err := store.Create(w, obj); err != nil {
			return err
		}
	}
	return nil
}

// tryCreate stores one object, which may be refused.
func (h *harness) tryCreate(ctx context.Context, obj model.Object) error {
	_, err := h.store.Write(ctx, origin(), func(w store.Writer) error { return store.Create(w, obj) })
	return err
}

// remove deletes the object of key with everything it owns.
func (h *harness) remove(ctx context.Context, key model.Key) (int64, error) {
	revision, err := h.store.Write(ctx, origin(), func(w store.Writer) error { return store.Delete(w, key) })
	if err == nil {
		h.marks[revision] = h.mark(ctx)
	}
	return revision, err
}

// get reads one object.
func (h *harness) get(ctx context.Context, key model.Key) (obj model.Object, err error) {
	err = h.store.Read(ctx, func(r store.Reader) error {
		obj, err = r.Get(key)
		return err
	})
	return obj, err
}

// names lists the keys that q selects.
func (h *harness) names(ctx context.Context, q store.Query) (names []string) {
	GinkgoHelper()
	err := h.store.Read(ctx, func(r store.Reader) error {
		list, err := r.List(q)
		for _, obj := range list {
			names = append(names, obj.Key().Text())
		}
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return names
}

// revision reads the current revision.
func (h *harness) revision(ctx context.Context) (revision int64) {
	GinkgoHelper()
	err := h.store.Read(ctx, func(r store.Reader) (err error) {
		revision, err = r.Revision()
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return revision
}

// since returns the changes after a revision that write has made; any other revision
// belongs to another database.
func (h *harness) since(ctx context.Context, revision int64) model.Change {
	GinkgoHelper()
	mark := h.marks[revision]
	if mark.Revision = revision; mark.ID == "" && revision != 0 {
		mark.ID = "another"
	}
	change, err := h.store.Since(ctx, mark)
	Expect(err).NotTo(HaveOccurred())
	return change
}

// paths lists the entries of a change; deleted objects have a "-".
func paths(change model.Change) []string {
	list := []string{}
	for _, e := range change.Entries {
		if e.Object == nil {
			list = append(list, "-"+e.Key.Path())
			continue
		}
		list = append(list, e.Key.Path())
	}
	return list
}

func upstream(name string) *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = name, "10.0.0.1", 8000
	return u
}

func service(name, fqdn string) *model.Service { return &model.Service{Name: name, FQDN: fqdn} }

func route(service, name string) *model.Route {
	return &model.Route{Service: service, Name: name, Prefix: "/"}
}

func proxy(name string) *model.Proxy {
	p := model.NewProxy()
	p.Name = name
	return p
}

func uses(service, route, upstream string) *model.RouteUpstream {
	return &model.RouteUpstream{Service: service, Route: route, Upstream: upstream}
}

func attached(proxy, service string) *model.ProxyService {
	return &model.ProxyService{Proxy: proxy, Service: service}
}

// shop is a service with a route to blue, attached to gw, in order of creation.
func shop() []model.Object {
	return []model.Object{
		upstream("blue"), service("shop", "shop.example.com"), route("shop", "root"), proxy("gw"),
		uses("shop", "root", "blue"), attached("gw", "shop"),
	}
}

// beOfKind matches a *model.Error of that kind.
func beOfKind(kind model.ErrorKind) types.GomegaMatcher {
	return WithTransform(func(err error) bool { return model.IsKind(err, kind) }, BeTrue())
}
