package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

const (
	// leaseLabel marks the Leases of all installations; yieldsTo is the annotation of a Lease that names the
	// installations to which its own leaves the status of objects.
	leaseLabel = "gateway.gatehouse.dev/conditions"
	yieldsTo   = "gateway.gatehouse.dev/yields-to"
	// goneAfter is how long the Lease of an installation must not change before another one takes over its objects:
	// twice the time in which a replica of its own would.
	goneAfter = 2 * leaseDuration
	// listEvery is the time between two lists of Leases.
	listEvery = 10 * time.Second
)

// Installations tells whether other installations that write conditions exist. An installation is named by its
// Lease, as NAMESPACE/NAME. Use NewInstallations.
type Installations struct {
	self   string
	client coordinationv1.LeasesGetter
	tell   func(message string)
	now    func() time.Time

	mu    sync.Mutex
	known map[string]*installation
	// yields has an object that is left to another installation, by that one; blind is why there is no list.
	yields map[string]Ref
	blind  error
}

// installation is another installation, as its Lease shows it.
type installation struct {
	// sign changes while a replica holds the Lease, and last did so at since, by the clock of this process.
	sign  string
	since time.Time
	// yields says that it leaves objects to this one.
	yields bool
}

// NewInstallations sends no request yet. The Lease is that of this installation. tell is called with who else serves
// its objects, whenever Run has looked.
func NewInstallations(config *rest.Config, namespace, name string, tell func(message string)) (*Installations, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the Leases of other installations: %w", err)
	}
	return &Installations{
		self: namespace + "/" + name, client: client, tell: tell, now: time.Now,
		known: map[string]*installation{}, yields: map[string]Ref{},
	}, nil
}

// Run looks for others until ctx ends. It runs on the replica that writes conditions.
func (i *Installations) Run(ctx context.Context) {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	defer i.tell("")
	for {
		leases, err := i.client.Leases("").List(ctx, metav1.ListOptions{LabelSelector: leaseLabel})
		if ctx.Err() != nil {
			return
		}
		var own *coordination.Lease
		if err == nil {
			own = i.read(leases.Items)
		}
		i.note(err)
		i.publish(ctx, own)
		i.tell(i.message())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// read records what the Leases show, and returns the own one.
func (i *Installations) read(leases []coordination.Lease) (own *coordination.Lease) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range leases {
		l := &leases[n]
		name := l.Namespace + "/" + l.Name
		if name == i.self {
			own = l
			continue
		}
		o := i.other(name)
		sign := ""
		if holder := l.Spec.HolderIdentity; holder != nil && *holder != "" && l.Spec.RenewTime != nil {
			sign = *holder + " " + l.Spec.RenewTime.String()
		}
		if sign != "" && sign != o.sign {
			o.since = i.now()
		}
		o.sign = sign
		o.yields = slices.Contains(strings.Split(l.Annotations[yieldsTo], " "), i.self)
	}
	return own
}

// note records whether there is a list. Without one nobody counts as gone.
func (i *Installations) note(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.blind = err
	if err != nil {
		for _, o := range i.known {
			o.since = i.now()
		}
	}
}

// other returns the record of an installation. One that was never seen counts as alive for goneAfter.
func (i *Installations) other(name string) *installation {
	o := i.known[name]
	if o == nil {
		o = &installation{since: i.now()}
		i.known[name] = o
	}
	return o
}

// isGone reports whether an installation no longer writes.
func (i *Installations) isGone(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now().Sub(i.other(name).since) >= goneAfter
}

// yield records which objects are left to others: one for each installation.
func (i *Installations) yield(objects map[string]Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.yields = objects
}

// publish writes into the own Lease who else writes the status of its objects, so that they see it. A conflict with its
// renewal is tried again by the next call.
func (i *Installations) publish(ctx context.Context, own *coordination.Lease) {
	if own == nil {
		return
	}
	i.mu.Lock()
	to := strings.Join(slices.Sorted(maps.Keys(i.yields)), " ")
	i.mu.Unlock()
	if own.Annotations[yieldsTo] == to {
		return
	}
	if own.Annotations == nil {
		own.Annotations = map[string]string{}
	}
	own.Annotations[yieldsTo] = to
	_, _ = i.client.Leases(own.Namespace).Update(ctx, own, metav1.UpdateOptions{FieldManager: fieldManager})
}

// message says who else serves objects of this installation; it is empty if nobody does.
func (i *Installations) message() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var said []string
	for _, name := range slices.Sorted(maps.Keys(i.known)) {
		object, yields := i.yields[name]
		switch o := i.known[name]; {
		case yields:
			text := fmt.Sprintf("installation %s writes the status of objects that this one serves, too, such as %s", name,
				object)
			if i.blind != nil {
				text += fmt.Sprintf(", or did before it was removed: Leases of all namespaces cannot be listed: %v", i.blind)
			}
			said = append(said, text)
		case o.yields && i.now().Sub(o.since) < goneAfter:
			said = append(said, fmt.Sprintf("installation %s serves objects whose status this one writes", name))
		}
	}
	if said == nil {
		return ""
	}
	return strings.Join(said, "; ") + "; give each installation its own names of proxies, or its own namespaces"
}
