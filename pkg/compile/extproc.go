package compile

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostExtProc(h *ir.Host, f *model.ExtProcFilter, at Place) (err error) {
	h.ExtProc, h.Asked, err = extProc(f, h.Asked, at)
	return err
}

func addRouteExtProc(r *ir.Route, f *model.ExtProcFilter, at Place) (err error) {
	r.ExtProc, r.Asked, err = extProc(f, r.Asked, at)
	return err
}

// extProc compiles a filter and adds its cluster to asked.
func extProc(f *model.ExtProcFilter, asked []*ir.Cluster, at Place) (*ir.ExtProc, []*ir.Cluster, error) {
	c, err := askedCluster(f.Upstream, true, at)
	if err != nil {
		return nil, asked, err
	}
	sent := func(mode string) string { return strings.TrimPrefix(mode, model.BodyNone) }
	return &ir.ExtProc{
		Cluster: c.Name, RequestHeaders: f.SendsRequestHeaders(), ResponseHeaders: f.ResponseHeaders,
		RequestBody: sent(f.RequestBody), ResponseBody: sent(f.ResponseBody), Allow: f.OnError == model.OnErrorAllow,
	}, withAsked(asked, c), nil
}
