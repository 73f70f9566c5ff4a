package inspect

import (
	"context"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
)

// Explain returns what the Envoys of a proxy do with a request: one answer for each
// different state of the Envoys. While no Envoy has a known state, the answer is what
// they should do.
type Explain func(ctx context.Context, proxy string, r explain.Request) ([]Explained, error)

// Explained is an answer with the addresses of the Envoys that it applies to; none
// means that it is from what Envoys should have.
type Explained struct {
	Envoys []string
	explain.Answer
}

// explainNothing is the Explain of an API without Envoys.
func explainNothing(_ context.Context, _ string, r explain.Request) ([]Explained, error) {
	a, err := explain.Explain(explain.State{}, r)
	return []Explained{{Answer: a}}, err
}

// Basis returns what an answer is based on.
func (e Explained) Basis() (basis string, envoys []string) {
	if len(e.Envoys) == 0 {
		return "wanted", []string{}
	}
	return "envoys", e.Envoys
}
