package compile

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostCompress(h *ir.Host, f *model.CompressFilter, _ Place) error {
	h.Compress = &ir.Compress{Algorithms: f.Algorithms, Level: f.Level}
	return nil
}

func addRouteCompress(r *ir.Route, f *model.CompressFilter) {
	r.Compress = &ir.Compress{Algorithms: f.Algorithms, Level: f.Level}
}
