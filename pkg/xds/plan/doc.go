// Package plan decides, for one ADS stream, which messages bring one Envoy
// safely from what it has to what it should have, or what to wait for and
// until when: first what is new or changed (secrets, extension configs,
// clusters, endpoints), then listeners and the hosts whose clusters are usable,
// then, after a grace period, removals. It also knows what the Envoy has
// acknowledged (Applied, Reached), what waits for what, and what was refused.
//
// Invariants: no route ever names a cluster that was not sent to Envoy; only
// the hosts that name a slow or refused cluster wait for it, and not longer
// than a bound; no domain is in two hosts or, while its new host waits, in none;
// nothing that a route of this Envoy may still name is removed;
// the same version is not sent twice, except alone after a refusal of a
// larger message or after a new subscription; the final state does not depend
// on the order of events.
//
// A Stream does no I/O, has no clock and never blocks.
package plan
