package plan

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Envoy crashes when a secret that a login used leaves its route configuration. So a host,
// the keeper, names every such secret that this Envoy ever received, in every
// configuration. The secrets of deleted logins stay as they are.

// loginPrefix is the prefix of the names of login secrets.
const loginPrefix = "login/"

// maxFreeLogins is how many names of retired secrets an Envoy may always report, however
// many names are kept for others. If they were ignored, the Envoy would crash.
const maxFreeLogins = 64

// logins are the pairs of login secrets that an Envoy requests, sorted.
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

// leave removes a name that is no longer requested. names are those that still are.
func (l *logins) leave(name string, names map[string]bool) {
	pair, ok := snapshot.LoginPair(name)
	if !ok || names[pair+"/client"] || names[pair+"/hmac"] {
		return
	}
	if i, found := slices.BinarySearch(*l, pair); found {
		*l = slices.Delete(*l, i, i+1)
	}
}

// retiredSecrets is what one Envoy has of the secrets of deleted logins.
type retiredSecrets struct {
	// retired are the pairs that the Envoy received and that are not in the snapshot,
	// sorted.
	retired []string
	// hosts are the hosts of the snapshot, with a keeper that also keeps the retired pairs.
	hosts []*snapshot.Host
	// settled means that retired and hosts are up to date.
	settled bool
	// heard means that the Envoy has reported which secrets it has. It sends all its
	// subscriptions before any answer.
	heard bool
	// replaced means that the Envoy has received or reported a route configuration since
	// the last call of Next. restsUntil is until when it may still be destroying the older
	// one.
	replaced   bool
	restsUntil time.Time
}

// loginRest is how long the secrets of logins stay unchanged after a route configuration.
// Envoy destroys the older configuration when its last request has ended, on any thread. It
// crashes if it reads a new version of a secret at that moment.
const loginRest = 500 * time.Millisecond

// supplySecrets is supply for secrets. A new version of a login's secret waits until the
// route configurations rest.
func (s *Stream) supplySecrets(now time.Time, next *due) []*flight {
	n := &s.secrets
	if s.retiredSecrets.replaced {
		s.retiredSecrets.replaced, s.retiredSecrets.restsUntil = false, now.Add(loginRest)
	}
	late := map[string]*snapshot.Resource{}
	if s.routes.flight != nil || now.Before(s.retiredSecrets.restsUntil) {
		for name, r := range n.todo {
			if n.isLogin(name) && n.held.has(name) {
				late[name] = r
				delete(n.todo, name)
			}
		}
	}
	if len(late) > 0 && now.Before(s.retiredSecrets.restsUntil) {
		next.add(s.retiredSecrets.restsUntil)
	}
	flights := n.supply(now)
	for name, r := range late {
		n.todo[name] = r
	}
	return flights
}

// changesLogins reports whether the secret of a login must be sent, or was sent and not
// answered. Route configurations wait until it is acknowledged.
func (s *Stream) changesLogins() bool {
	for name := range s.secrets.todo {
		if s.secrets.isLogin(name) {
			return true
		}
	}
	for _, f := range s.flights {
		if f.Type == snapshot.SecretType &&
			slices.ContainsFunc(f.Resources, func(r *snapshot.Resource) bool { return s.secrets.isLogin(r.Name) }) {
			return true
		}
	}
	return false
}

// hosts returns the hosts that the Envoy should have.
func (s *Stream) hosts() []*snapshot.Host {
	if k := &s.retiredSecrets; !k.settled {
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
	return s.retiredSecrets.hosts
}

// isNewPair reports whether the Envoy requests, or has, a login secret that is not in the
// snapshot.
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

// pairsOf returns the pairs that the keeper among hosts keeps.
func pairsOf(hosts []*snapshot.Host, keeper string) []string {
	if h := hostIn(hosts, keeper); h != nil {
		return h.Pairs()
	}
	return nil
}

// knowsLogins reports whether a route configuration may be sent. An Envoy that reconnects
// already has one, and may use secrets that only it knows about.
func (s *Stream) knowsLogins() bool {
	return s.retiredSecrets.heard || len(s.routes.reported) == 0 || s.want.KeeperName() == ""
}
