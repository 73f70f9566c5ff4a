package plan

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Envoy crashes when a secret that a login used leaves its route configuration. So a host,
// the keeper, names every such secret that this Envoy was ever given, in every
// configuration that it is sent. The secrets of logins that are gone stay as they are.

// loginPrefix begins the names of the secrets of logins.
const loginPrefix = "login/"

// maxFreeLogins are the names of retired secrets that an Envoy may report however many
// names others keep: one that is not listened to would crash.
const maxFreeLogins = 64

// logins are the pairs of login secrets that an Envoy asks for, sorted.
type logins []string

func (l *logins) add(name string) {
	pair, ok := snapshot.LoginPair(name)
	if !ok {
		return
	}
	if i, found := slices.BinarySearch(*l, pair); !found {
		*l = slices.Insert(*l, i, pair)
	}
}

// leave notes that a name is not asked for any more; names are those that still are.
func (l *logins) leave(name string, names map[string]bool) {
	pair, ok := snapshot.LoginPair(name)
	if !ok || names[pair+"/client"] || names[pair+"/hmac"] {
		return
	}
	if i, found := slices.BinarySearch(*l, pair); found {
		*l = slices.Delete(*l, i, i+1)
	}
}

// keeper is what one Envoy has of the secrets of logins that are gone.
type keeper struct {
	// retired are the pairs that the Envoy was given and that the snapshot does not
	// have, sorted.
	retired []string
	// hosts are those of the snapshot, with a keeper that keeps the retired too.
	hosts []*snapshot.Host
	// settled says that both are what they should be.
	settled bool
	// heard says that the Envoy has said which secrets it has: it sends all its
	// subscriptions before any answer.
	heard bool
	// replaced says that the Envoy got, or came with, a route configuration since Next
	// was called, and restsUntil until when it may still be destroying the older one.
	replaced   bool
	restsUntil time.Time
}

// loginRest is how long the secrets of logins do not change after a route configuration.
// Envoy destroys the older one when its last request has ended, on any thread, and crashes
// when it reads a new form of a secret at that moment.
const loginRest = 500 * time.Millisecond

// supplySecrets is supply for secrets: a new form of a login's waits until the route
// configurations rest.
func (s *Stream) supplySecrets(now time.Time, next *due) []*flight {
	n := &s.secrets
	if s.keeper.replaced {
		s.keeper.replaced, s.keeper.restsUntil = false, now.Add(loginRest)
	}
	late := map[string]*snapshot.Resource{}
	if s.routes.flight != nil || now.Before(s.keeper.restsUntil) {
		for name, r := range n.todo {
			if n.isLogin(name) && n.held.has(name) {
				late[name] = r
				delete(n.todo, name)
			}
		}
	}
	if len(late) > 0 && now.Before(s.keeper.restsUntil) {
		next.add(s.keeper.restsUntil)
	}
	flights := n.supply(now)
	for name, r := range late {
		n.todo[name] = r
	}
	return flights
}

// changesLogins reports whether the secret of a login waits to be sent, or was sent and not
// answered. Route configurations rest until it is there.
func (s *Stream) changesLogins() bool {
	for name := range s.secrets.todo {
		if s.secrets.isLogin(name) {
			return true
		}
	}
	for _, f := range s.flights {
		if f.Type == snapshot.SecretType && slices.ContainsFunc(f.Resources, func(r *snapshot.Resource) bool { return s.secrets.isLogin(r.Name) }) {
			return true
		}
	}
	return false
}

// hosts are those that the Envoy should have.
func (s *Stream) hosts() []*snapshot.Host {
	if k := &s.keeper; !k.settled {
		k.retired = nil
		name := s.want.KeeperName()
		for _, list := range [][]string{s.secrets.logins, pairsOf(s.routes.sent, name), pairsOf(s.routes.acked, name)} {
			for _, pair := range list {
				if _, wanted := slices.BinarySearch(s.want.Pairs(), pair); !wanted {
					k.retired = append(k.retired, pair)
				}
			}
		}
		slices.Sort(k.retired)
		k.retired = slices.Compact(k.retired)
		k.hosts, k.settled = s.want.Keeping(k.retired), true
	}
	return s.keeper.hosts
}

// isNewPair reports whether the Envoy asks for, or has, the secret of a login that the
// snapshot does not have.
func (s *Stream) isNewPair(names []string, initial map[string]string) bool {
	is := func(name string) bool {
		_, wanted := slices.BinarySearch(s.want.Pairs(), pairOf(name))
		return s.secrets.isLogin(name) && !wanted
	}
	if slices.ContainsFunc(names, is) {
		return true
	}
	for name := range initial {
		if is(name) {
			return true
		}
	}
	return false
}

func pairOf(secret string) string {
	pair, _ := snapshot.LoginPair(secret)
	return pair
}

// pairsOf are the pairs that the keeper among hosts keeps.
func pairsOf(hosts []*snapshot.Host, keeper string) []string {
	if h := hostIn(hosts, keeper); h != nil {
		return h.Pairs()
	}
	return nil
}

// knowsLogins reports whether a route configuration may be sent. An Envoy that comes back
// has one, and uses secrets that only it knows of.
func (s *Stream) knowsLogins() bool {
	return s.keeper.heard || len(s.routes.reported) == 0 || s.want.KeeperName() == ""
}
