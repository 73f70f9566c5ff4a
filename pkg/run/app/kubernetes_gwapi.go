package app

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
	kubestatus "github.com/gatehouse-gateway/gatehouse/pkg/input/kube/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// cachedAPIObjects lists the objects of the Gateway API that have conditions.
func cachedAPIObjects(ctx context.Context, watch *kube.Watch, controller string) (objects []kubestatus.Cached, err error) {
	add := func(kind string, o client.Object, shape func(*translate.Object) kubestatus.Shape) {
		objects = append(objects, kubestatus.Cached{
			Object: kubestatus.Object{
				Ref: kubestatus.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, UID: o.GetUID(),
				ResourceVersion: kubestatus.ParseVersion(o.GetResourceVersion()),
			},
			Generation: o.GetGeneration(), Make: shape,
		})
	}
	if watch.HasRead(translate.KindGatewayClass) {
		var list gwapi.GatewayClassList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			add(translate.KindGatewayClass, o, func(b *translate.Object) kubestatus.Shape { return kubestatus.Class(o, b, translate.Features()) })
		}
	}
	if watch.HasRead(translate.KindGateway) {
		var list gwapi.GatewayList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			add(translate.KindGateway, o, func(b *translate.Object) kubestatus.Shape { return kubestatus.Gateway(o, b) })
		}
	}
	if watch.HasRead(translate.KindListenerSet) {
		var list gwapi.ListenerSetList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			add(translate.KindListenerSet, o, func(b *translate.Object) kubestatus.Shape { return kubestatus.ListenerSet(o, b) })
		}
	}
	if watch.HasRead(translate.KindBackendTLSPolicy) {
		var list gwapi.BackendTLSPolicyList
		if err := watch.Cache().List(ctx, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			add(translate.KindBackendTLSPolicy, o, func(b *translate.Object) kubestatus.Shape { return kubestatus.Policy(o.Status, b, controller) })
		}
	}
	err = eachRoute(ctx, watch, func(kind string, o client.Object, before gwapi.RouteStatus) {
		add(kind, o, func(b *translate.Object) kubestatus.Shape { return kubestatus.Route(before, b, controller) })
	})
	return objects, err
}

// eachRoute visits the routes that were read, of all kinds.
func eachRoute(ctx context.Context, watch *kube.Watch, visit func(kind string, o client.Object, status gwapi.RouteStatus)) error {
	var http gwapi.HTTPRouteList
	var grpc gwapi.GRPCRouteList
	var tls gwapi.TLSRouteList
	var tcp gwapi.TCPRouteList
	var udp gwapi.UDPRouteList
	for _, routes := range []struct {
		kind string
		list client.ObjectList
		add  func()
	}{
		{translate.KindHTTPRoute, &http, func() {
			for i := range http.Items {
				visit(translate.KindHTTPRoute, &http.Items[i], http.Items[i].Status.RouteStatus)
			}
		}},
		{translate.KindGRPCRoute, &grpc, func() {
			for i := range grpc.Items {
				visit(translate.KindGRPCRoute, &grpc.Items[i], grpc.Items[i].Status.RouteStatus)
			}
		}},
		{translate.KindTLSRoute, &tls, func() {
			for i := range tls.Items {
				visit(translate.KindTLSRoute, &tls.Items[i], tls.Items[i].Status.RouteStatus)
			}
		}},
		{translate.KindTCPRoute, &tcp, func() {
			for i := range tcp.Items {
				visit(translate.KindTCPRoute, &tcp.Items[i], tcp.Items[i].Status.RouteStatus)
			}
		}},
		{translate.KindUDPRoute, &udp, func() {
			for i := range udp.Items {
				visit(translate.KindUDPRoute, &udp.Items[i], udp.Items[i].Status.RouteStatus)
			}
		}},
	} {
		if !watch.HasRead(routes.kind) {
			continue
		}
		if err := watch.Cache().List(ctx, routes.list); err != nil {
			return err
		}
		routes.add()
	}
	return nil
}
