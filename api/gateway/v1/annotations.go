package v1

// Annotations that gatehouse export crd writes, so that gatehouse import crd brings back
// what Kubernetes has no place for. In the cluster they say nothing unless noted.
const (
	// AnnotationName is the object's name in the REST API, where it is not
	// metadata.name.
	AnnotationName = Group + "/name"
	// AnnotationTags are the object's tags, with spaces between them.
	AnnotationTags = Group + "/tags"
	// AnnotationSNI is on a Secret: the one host name that its certificate is for.
	// Without it these are the names in the certificate. It holds in the cluster too.
	AnnotationSNI = Group + "/sni"
	// AnnotationUpstream is on a Service: how to speak to it, as the JSON of
	// BackendSettings. It holds for logins, which name a Service and nothing more; a
	// route says it in spec.routes[].services[].
	AnnotationUpstream = Group + "/upstream"
)

// Further annotations for gatehouse import crd, which say nothing in the cluster.
const (
	// AnnotationWeight is on a Service: the weight of its upstream, where no route says it.
	AnnotationWeight = Group + "/weight"
	// AnnotationAddress is on a Service: the address of its upstream, where Kubernetes writes the
	// same address in another way.
	AnnotationAddress = Group + "/address"
	// AnnotationConfig is on a RouteFilter or GlobalConfig: the configuration with the names of the
	// REST API, where those of Kubernetes differ. It counts while the configuration is as it was
	// written.
	AnnotationConfig = Group + "/config"
	// AnnotationSecretType is on a Secret without content: its type in the REST API.
	AnnotationSecretType = Group + "/secret-type"
	// AnnotationSettings is on the ConfigMap of the proxies and of the Secrets to be made.
	AnnotationSettings = Group + "/settings"
)

// Unattached is the proxy of a GatewayHost or GlobalConfig that belongs to none: no Envoy connects
// under this name.
const Unattached = "-unattached-"
