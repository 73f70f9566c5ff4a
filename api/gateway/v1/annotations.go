package v1

// Annotations that gatehouse export crd writes for what Kubernetes has no field for.
// gatehouse import crd reads them. They have no effect in the cluster unless noted.
const (
	// AnnotationName is the object's name in the REST API, if it is not
	// metadata.name.
	AnnotationName = Group + "/name"
	// AnnotationTags are the object's tags, separated by spaces.
	AnnotationTags = Group + "/tags"
	// AnnotationSNI is set on a Secret: the one host name that its certificate is for.
	// Without it, the certificate is for the names in it. It also applies in the cluster.
	AnnotationSNI = Group + "/sni"
	// AnnotationUpstream is set on a Service: how to speak to it, as the JSON of
	// BackendSettings. It applies to logins, which only name the Service; a route has
	// these settings in spec.routes[].services[].
	AnnotationUpstream = Group + "/upstream"
)

// Further annotations for gatehouse import crd. They have no effect in the cluster.
const (
	// AnnotationWeight is set on a Service: the weight of its upstream, if no route sets it.
	AnnotationWeight = Group + "/weight"
	// AnnotationAddress is set on a Service: the address of its upstream, if Kubernetes writes the
	// same address differently.
	AnnotationAddress = Group + "/address"
	// AnnotationConfig is set on a RouteFilter or GlobalConfig: the configuration with the names of
	// the REST API, if the names in Kubernetes differ. It applies as long as the exported
	// configuration has not changed.
	AnnotationConfig = Group + "/config"
	// AnnotationSecretType is set on a Secret without content, and is its type in the REST API; and
	// on the Secret of a key set, with the value keyset.
	AnnotationSecretType = Group + "/secret-type"
	// AnnotationKeys has the descriptions and tags of the keys in the Secret of a key set, as JSON.
	AnnotationKeys = Group + "/keys"
	// AnnotationSettings is set on the ConfigMap with the proxies and the Secrets to create.
	AnnotationSettings = Group + "/settings"
)

// Unattached is the proxy of a GatewayHost or GlobalConfig that is attached to no proxy. No Envoy
// connects under this name.
const Unattached = "-unattached-"
