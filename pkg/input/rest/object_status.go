package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// withStatus is an object with its block "status".
type withStatus struct {
	object any
	status *inspect.ObjectStatus
}

// MarshalJSON adds the block behind the fields of the object.
func (w withStatus) MarshalJSON() ([]byte, error) {
	object, err := marshal(w.object)
	if err != nil {
		return nil, err
	}
	block, err := marshal(w.status)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(object, []byte("}")), `,"status":%s}`, block), nil
}

// marshal leaves text as it is, as writeJSON does.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// viewsOf is what a reader may see of objects, each with its status
// where that is asked for and something is known.
func (s *server) viewsOf(r store.Reader, objs []model.Object, status bool) ([]any, error) {
	list := views(objs)
	if !status {
		return list, nil
	}
	blocks, err := s.live.Objects(r, objs)
	for i, b := range blocks {
		list[i] = withStatus{list[i], b}
	}
	return list, err
}

// blocksOf are the statuses of what a read shows.
func blocksOf(shown []any) (blocks []*inspect.ObjectStatus) {
	for _, v := range shown {
		if w, ok := v.(withStatus); ok {
			blocks = append(blocks, w.status)
		}
	}
	return blocks
}
