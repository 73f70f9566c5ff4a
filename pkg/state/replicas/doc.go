// Package replicas combines what several control planes know about their Envoys.
//
// Each replica writes a Report about its Envoys to a Board when the Report has
// changed, and reads the Reports of the others there. A Hub does both, and keeps
// what it has read. The Board is PostgreSQL (pkg/state/store/sqlstore) or Kubernetes.
//
// A replica that waits for the Envoys of all replicas (?wait=applied) asks the
// others on the Board: each waits for its own Envoys, and answers there.
//
// Invariants: a Report is never changed after it was made. The cost of a Board is
// bounded, whatever the Envoys do. A silent replica is not heard: the state of its
// Envoys is then unknown, never assumed. The clocks of two replicas are never
// compared.
package replicas
