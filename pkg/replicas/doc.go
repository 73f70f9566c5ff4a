// Package replicas makes one truth of what several control planes know of their
// Envoys.
//
// Each replica tells a Report of its Envoys to a Board, when it has changed, and
// reads those of the others there. A Hub does both, and remembers what it has
// heard. The Board is PostgreSQL (pkg/store/sqlstore) or Kubernetes.
//
// A replica that waits for the Envoys of all (?wait=applied) asks the others
// on the Board: each waits for its own Envoys, and answers there.
//
// Invariants: a Report is never changed after it was made. What a Board costs is
// bounded, whatever the Envoys do. A replica that is silent is not heard: what its
// Envoys have is unknown then, never assumed. The clocks of two replicas are never
// compared.
package replicas
