package crd

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// Objects are the Kubernetes objects that make up a configuration.
type Objects struct {
	Settings      []*corev1.ConfigMap
	Secrets       []*corev1.Secret
	Services      []*corev1.Service
	Slices        []*discoveryv1.EndpointSlice
	Filters       []*gatewayv1.RouteFilter
	GlobalConfigs []*gatewayv1.GlobalConfig
	Hosts         []*gatewayv1.GatewayHost
}

// all lists the objects in the order of writing: each before those that name it.
func (o *Objects) all() []runtime.Object {
	var list []runtime.Object
	list = appendObjects(list, o.Settings)
	list = appendObjects(list, o.Secrets)
	list = appendObjects(list, o.Services)
	list = appendObjects(list, o.Slices)
	list = appendObjects(list, o.Filters)
	list = appendObjects(list, o.GlobalConfigs)
	return appendObjects(list, o.Hosts)
}

func appendObjects[T runtime.Object](list []runtime.Object, objects []T) []runtime.Object {
	for _, o := range objects {
		list = append(list, o)
	}
	return list
}

// Add adds other objects.
func (o *Objects) Add(other *Objects) {
	o.Settings, o.Secrets, o.Services = append(o.Settings, other.Settings...), append(o.Secrets, other.Secrets...),
		append(o.Services, other.Services...)
	o.Slices, o.Filters = append(o.Slices, other.Slices...), append(o.Filters, other.Filters...)
	o.GlobalConfigs, o.Hosts = append(o.GlobalConfigs, other.GlobalConfigs...), append(o.Hosts, other.Hosts...)
}

// Foreign describes the objects if none is of Gatehouse's group and Export wrote none; otherwise it
// is empty. skipped are kinds that were left out.
func (o *Objects) Foreign(skipped []string) string {
	if len(o.Hosts)+len(o.Filters)+len(o.GlobalConfigs) > 0 ||
		slices.ContainsFunc(o.Settings,
			func(m *corev1.ConfigMap) bool { return m.Annotations[gatewayv1.AnnotationSettings] != "" }) ||
		slices.ContainsFunc(o.Services,
			func(s *corev1.Service) bool { return s.Annotations[gatewayv1.AnnotationUpstream] != "" }) {
		return ""
	}
	kinds := slices.Clone(skipped)
	for _, object := range o.all() {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	slices.Sort(kinds)
	found := cmp.Or(strings.Join(slices.Compact(kinds), ", "), "nothing")
	return fmt.Sprintf("there is no object of group %s, but %s: "+
		`"kubectl get gatehouse,services,endpointslices,secrets,configmaps -o yaml" prints what is needed`, gatewayv1.Group,
		found)
}

// Write writes the objects as YAML documents for kubectl apply, after the comments.
func Write(w io.Writer, o *Objects, comments []string) error {
	var out bytes.Buffer
	for _, c := range comments {
		out.WriteString("# " + strings.ReplaceAll(c, "\n", "\n# ") + "\n")
	}
	for _, object := range o.all() {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		delete(fields, "status") // the cluster writes it
		b, err := yaml.Marshal(fields)
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(b)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Read reads YAML or JSON documents, as kubectl get -o yaml prints them. It skips other kinds of
// objects and returns each of these kinds once.
func Read(r io.Reader) (o *Objects, skipped []string, err error) {
	o = &Objects{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for n := 1; ; n++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return o, skipped, nil
		}
		if err == nil {
			err = o.add(text, &skipped)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading document %d: %w", n, err)
		}
	}
}

// add adds the object of a text, or those of a list.
func (o *Objects) add(text []byte, skipped *[]string) error {
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if len(text) > 0 && text[0] != '{' && string(text) != "null" {
		return errors.New("is not an object of Kubernetes, which has an apiVersion and a kind")
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	switch {
	case head.Kind == "" && string(text) == "null":
		return nil // only comments
	case head.Kind == "":
		return errors.New("has no kind: it is not an object of Kubernetes")
	case strings.HasSuffix(head.Kind, "List"):
		for n, item := range head.Items {
			if err := o.add(item, skipped); err != nil {
				return fmt.Errorf("items[%d]: %w", n, err)
			}
		}
		return nil
	case group == gatewayv1.Group && head.Kind == gatewayv1.KindGatewayHost:
		return decode(text, &o.Hosts)
	case group == gatewayv1.Group && head.Kind == gatewayv1.KindRouteFilter:
		return decode(text, &o.Filters)
	case group == gatewayv1.Group && head.Kind == gatewayv1.KindGlobalConfig:
		return decode(text, &o.GlobalConfigs)
	case head.APIVersion == "v1" && head.Kind == "Service":
		return decode(text, &o.Services)
	case head.APIVersion == "v1" && head.Kind == "Secret":
		return decode(text, &o.Secrets)
	case head.APIVersion == "v1" && head.Kind == "ConfigMap":
		return decode(text, &o.Settings)
	case group == discoveryv1.GroupName && head.Kind == "EndpointSlice":
		return decode(text, &o.Slices)
	}
	if !slices.Contains(*skipped, head.Kind) {
		*skipped = append(*skipped, head.Kind)
	}
	return nil
}

// decode adds an object to a list. An unknown field in a kind of Gatehouse is an error: its content
// would be lost. Other kinds may be of a newer Kubernetes.
func decode[T any](text []byte, list *[]*T) error {
	object, read := new(T), yaml.Unmarshal
	switch any(object).(type) {
	case *gatewayv1.GatewayHost, *gatewayv1.RouteFilter, *gatewayv1.GlobalConfig:
		read = yaml.UnmarshalStrict
	}
	if err := read(text, object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}
