package status

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// The names of events.
const (
	// EventChange: a revision was stored, here or by another control plane.
	EventChange = "change"
	// EventPublish: a revision is on its way to the Envoys of this process.
	EventPublish = "publish"
	// EventConnect and EventDisconnect: an Envoy came or went.
	EventConnect    = "connect"
	EventDisconnect = "disconnect"
	// EventAck and EventNack: an Envoy acknowledged or refused a response.
	EventAck  = "ack"
	EventNack = "nack"
	// EventApplied: an Envoy has a revision in full.
	EventApplied = "applied"
	// EventOverdue: the wait for a cluster, a secret or an extension of an Envoy reached its bound, and
	// the routes that name it were sent.
	EventOverdue = "overdue"
	// EventCertificate: the certificate of a secret expires soon, or has expired.
	EventCertificate = "certificate"
	// EventKey: an API key expires soon, or has expired.
	EventKey = "key"
	// EventProvider: an identity provider has a new answer, fails, or answers again.
	EventProvider = "provider"
	// EventLogin: logins fail at a service.
	EventLogin = "login"
	// EventReplica: another replica came, went, or is not heard.
	EventReplica = "replica"
	// EventReset: events were lost to this reader, or the database was restored.
	EventReset = "reset"
)

// Event is something that happened. Fields without a value are left out.
type Event struct {
	Event    string     `json:"event"`
	At       model.Time `json:"at"`
	Revision int64      `json:"revision,omitempty"`
	// Actor is who wrote a revision, and Request the call that wrote it.
	Actor   string `json:"actor,omitempty"`
	Request string `json:"request,omitempty"`
	// Changes is the number of objects and links that changed in a revision, or in those that were
	// published together.
	Changes int `json:"changes,omitempty"`
	// Proxies are those that a publish changes, sorted.
	Proxies []string `json:"proxies,omitempty"`
	// TookMS is how long a publish took to build, in milliseconds.
	TookMS float64 `json:"took_ms,omitempty"`
	// Replica is the other replica where it happened, or that it is about; empty means that it happened
	// here.
	Replica string `json:"replica,omitempty"`
	// Proxy, Envoy (its address) and Version describe one Envoy.
	Proxy   string `json:"proxy,omitempty"`
	Envoy   string `json:"envoy,omitempty"`
	Version string `json:"version,omitempty"`
	// Type is the type of the resources of a response, as TypeName returns it.
	Type string `json:"type,omitempty"`
	// Resources are the first names in a response, More the number of others.
	Resources []string `json:"resources,omitempty"`
	More      int      `json:"more,omitempty"`
	// Object is the path of the object that a condition is about, Code its code.
	Object string `json:"object,omitempty"`
	Code   string `json:"code,omitempty"`
	// Message says why a revision was made; or it is Envoy's reason for a refusal, that of the condition, or what to do
	// after a reset.
	Message string `json:"message,omitempty"`

	id int64
}

// feedSize is how many events a Feed keeps for readers that were disconnected.
const feedSize = 4096

// Feed keeps the newest events in a ring. Any number of readers go through it, each at its own pace: a
// reader that is too slow, or returns too late, learns that events were lost. So a reader uses no memory
// and blocks nothing.
//
// Events are numbered from 1; a Cursor identifies one across connections.
type Feed struct {
	// epoch distinguishes the numbers of this process from those of another.
	epoch string

	mu     sync.Mutex
	ring   []Event // the event with number n is at (n-1) % feedSize
	last   int64
	more   chan struct{} // closed with the next event; nil: no reader waits
	counts Counts
}

// Cursor is the position after an event.
type Cursor struct {
	epoch string
	id    int64
}

// String returns the cursor as a client stores it.
func (c Cursor) String() string { return c.epoch + "-" + strconv.FormatInt(c.id, 10) }

// ParseCursor parses what String returned. Any other text is a cursor whose events are lost.
func ParseCursor(text string) Cursor {
	epoch, digits, _ := strings.Cut(text, "-")
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Cursor{}
	}
	return Cursor{epoch, id}
}

func newFeed() *Feed {
	return &Feed{epoch: strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// Publish adds an event and sets its time. It never blocks.
func (f *Feed) Publish(e Event) {
	e.At = model.At(time.Now())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(e)
	f.counts.add(e)
}

// publishOf adds an event of another replica, which has counted it.
func (f *Feed) publishOf(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(e)
}

// add requires mu.
func (f *Feed) add(e Event) {
	f.last++
	e.id = f.last
	if len(f.ring) < feedSize {
		f.ring = append(f.ring, e)
	} else {
		f.ring[(e.id-1)%feedSize] = e
	}
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
}

// Now returns the cursor after the newest event.
func (f *Feed) Now() Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Cursor{f.epoch, f.last}
}

// After returns up to limit events after a cursor. If events in between were lost, it returns one reset
// event, and the events after it start from now. If there are no new events, more is closed with the next
// one.
func (f *Feed) After(c Cursor, limit int) (events []Event, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := max(0, f.last-feedSize) // the number before the oldest event
	if c.epoch != f.epoch || c.id < oldest || c.id > f.last {
		return []Event{{
			Event: EventReset, At: model.At(time.Now()),
			Message: "events were lost: read again what you keep, then go on with what follows", id: f.last,
		}}, nil
	}
	if c.id == f.last {
		if f.more == nil {
			f.more = make(chan struct{})
		}
		return nil, f.more
	}
	for id := c.id + 1; id <= f.last && len(events) < limit; id++ {
		events = append(events, f.ring[(id-1)%feedSize])
	}
	return events, nil
}

// Behind returns the cursor after an event that After returned.
func (f *Feed) Behind(e Event) Cursor { return Cursor{f.epoch, e.id} }

// Counts returns the totals.
func (f *Feed) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts
	c.Events, c.Acks, c.Nacks = maps.Clone(c.Events), maps.Clone(c.Acks), maps.Clone(c.Nacks)
	return c
}

// Counts are totals since the start of the process.
type Counts struct {
	// Events counts the events of each name; Acks and Nacks count those of each type of resources.
	Events, Acks, Nacks map[string]int64
	// PublishSeconds is the total time of all publishes.
	PublishSeconds float64
	// Revision is the one that was last published.
	Revision int64
}

func (c *Counts) add(e Event) {
	if c.Events == nil {
		*c = Counts{Events: map[string]int64{}, Acks: map[string]int64{}, Nacks: map[string]int64{}}
	}
	c.Events[e.Event]++
	switch e.Event {
	case EventAck:
		c.Acks[e.Type]++
	case EventNack:
		c.Nacks[e.Type]++
	case EventPublish:
		c.PublishSeconds += e.TookMS / 1000
		c.Revision = e.Revision
	}
}
