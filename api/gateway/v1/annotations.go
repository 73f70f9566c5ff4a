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
