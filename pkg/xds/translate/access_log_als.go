package translate

import (
	"maps"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	grpclogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// alsLog is a log for Envoy's access log service. Its entries have the details in any case, so a request has none if
// these may have what an identity provider answered: of all texts of Envoy, only that of a failed login has both a space
// and a colon. An entry of any other request is there, whatever its client writes into its path.
func alsLog(
	log ir.AccessLog, formats map[string]string, only []*accesslogv3.AccessLogFilter,
) ([]*accesslogv3.AccessLog, error) {
	harmless, err := seam.CEL(`!(` + seam.Details + `.contains(" ") && ` + seam.Details + `.contains(":"))`)
	if err != nil {
		return nil, err
	}
	one, err := logger(log, formats, only, seam.AnyOf(seam.AllOf(noLogin()...), harmless))
	return []*accesslogv3.AccessLog{one}, err
}

// toALS sends entries to an access log service, with the fields that Envoy's form lacks as tags.
func toALS(log ir.AccessLog, formats map[string]string) (name string, sink seam.Proto) {
	tags := map[string]string{}
	for _, field := range []string{"client", "service", "trace_id"} {
		if format := formats[field]; format != "" {
			tags[field] = format
		}
	}
	tags = fieldsOf(log, tags)
	service, _ := otlp(log.Collector)
	service.Timeout = nil
	common := &grpclogv3.CommonGrpcAccessLogConfig{
		LogName: log.Name, GrpcService: service, TransportApiVersion: corev3.ApiVersion_V3,
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		common.CustomTags = append(common.CustomTags, seam.TraceTag(tag, tags[tag]))
	}
	if formats["method"] == "" {
		return "envoy.access_loggers.tcp_grpc", &grpclogv3.TcpGrpcAccessLogConfig{CommonConfig: common}
	}
	return "envoy.access_loggers.http_grpc", &grpclogv3.HttpGrpcAccessLogConfig{CommonConfig: common}
}
