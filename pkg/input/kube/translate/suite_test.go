package translate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestTranslate(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Kubernetes objects to model objects")
}

// cluster is a World with the Secrets that exist in the cluster.
type cluster struct {
	*translate.World
	secrets map[translate.Ref]metav1.Object
	// read are the Secrets that were read.
	read []translate.Ref
}

// newCluster returns a cluster whose installation has the proxies gatehouse and edge.
func newCluster(documents ...string) *cluster {
	GinkgoHelper()
	c := &cluster{World: translate.New(proxies("gatehouse", "edge"), nil), secrets: map[translate.Ref]metav1.Object{}}
	c.apply(documents...)
	return c
}

func proxies(names ...string) (list []*model.Proxy) {
	for _, name := range names {
		p := model.NewProxy()
		p.Name = name
		list = append(list, p)
	}
	return list
}

// apply applies YAML documents, as kubectl does.
func (c *cluster) apply(documents ...string) {
	GinkgoHelper()
	for _, text := range documents {
		for _, object := range parse(text) {
			c.put(object)
		}
	}
}

func (c *cluster) put(object metav1.Object) {
	c.Upsert(object)
	if ref := refOf(object); translate.IsFetched(ref.Kind) {
		c.secrets[ref] = object
	}
}

// remove deletes an object: KIND NAMESPACE/NAME.
func (c *cluster) remove(name string) {
	GinkgoHelper()
	kind, rest, _ := strings.Cut(name, " ")
	namespace, name, _ := strings.Cut(rest, "/")
	ref := translate.Ref{Kind: kind, Namespace: namespace, Name: name}
	delete(c.secrets, ref)
	c.Delete(ref)
}

// step settles, reads the Secrets that are requested, and takes the changes.
func (c *cluster) step() translate.Step {
	GinkgoHelper()
	for refs := c.Settle(); len(refs) > 0; refs = c.Settle() {
		for _, ref := range refs {
			c.read = append(c.read, ref)
			if s := c.secrets[ref]; s != nil {
				c.Upsert(s)
			} else {
				c.SecretAbsent(ref)
			}
		}
	}
	return c.Take()
}

func refOf(object metav1.Object) translate.Ref {
	kind := ""
	switch object.(type) {
	case *gatewayv1.GatewayHost:
		kind = "GatewayHost"
	case *gatewayv1.RouteFilter:
		kind = "RouteFilter"
	case *gatewayv1.GlobalConfig:
		kind = "GlobalConfig"
	case *gatewayv1.Consumer:
		kind = "Consumer"
	case *gatewayv1.ReferenceGrant:
		kind = "ReferenceGrant"
	case *corev1.Service:
		kind = "Service"
	case *discoveryv1.EndpointSlice:
		kind = "EndpointSlice"
	case *corev1.Secret:
		kind = "Secret"
	case *corev1.ConfigMap:
		kind = "ConfigMap"
	}
	return translate.Ref{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// parse reads YAML documents. An object without a namespace is in shop.
func parse(text string) (list []metav1.Object) {
	GinkgoHelper()
	for _, doc := range strings.Split(text, "\n---\n") {
		var head metav1.TypeMeta
		Expect(yaml.Unmarshal([]byte(doc), &head)).To(Succeed(), doc)
		kinds := map[string]metav1.Object{
			"GatewayHost": &gatewayv1.GatewayHost{}, "RouteFilter": &gatewayv1.RouteFilter{}, "GlobalConfig": &gatewayv1.GlobalConfig{},
			"Consumer": &gatewayv1.Consumer{}, "ReferenceGrant": &gatewayv1.ReferenceGrant{}, "Service": &corev1.Service{}, "EndpointSlice": &discoveryv1.EndpointSlice{}, "Secret": &corev1.Secret{},
			"ConfigMap": &corev1.ConfigMap{}, "BackendTLSPolicy": &gwapi.BackendTLSPolicy{}, "ListenerSet": &gwapi.ListenerSet{},
			"Gateway": &gwapi.Gateway{}, "HTTPRoute": &gwapi.HTTPRoute{},
		}
		object := kinds[head.Kind]
		Expect(object).NotTo(BeNil(), doc)
		Expect(yaml.UnmarshalStrict([]byte(doc), object)).To(Succeed(), doc)
		if object.GetNamespace() == "" {
			object.SetNamespace("shop")
		}
		if s, ok := object.(*corev1.Secret); ok { // as the API server does
			for key, value := range s.StringData {
				if s.Data == nil {
					s.Data = map[string][]byte{}
				}
				s.Data[key] = []byte(value)
			}
			s.StringData = nil
		}
		_ = object.(runtime.Object)
		list = append(list, object)
	}
	return list
}

// shown returns a step as text, one line for each operation.
func shown(step translate.Step) (lines []string) {
	for _, op := range step.Ops {
		if op.Object == nil {
			lines = append(lines, "- "+op.Key.Path())
		} else {
			lines = append(lines, "+ "+op.Key.Path())
		}
	}
	return lines
}

// problems returns the problems of an object in a step, one line each.
func problems(step translate.Step, name string) (lines []string) {
	GinkgoHelper()
	for _, p := range objectIn(step, name).Problems {
		lines = append(lines, p.Path+" "+p.Reason+": "+p.Message)
	}
	return lines
}

// objectIn returns the result of KIND NAMESPACE/NAME in a step.
func objectIn(step translate.Step, name string) *translate.Object {
	GinkgoHelper()
	for ref, o := range step.Objects {
		if ref.String() == name {
			Expect(o).NotTo(BeNil(), name)
			return o
		}
	}
	Fail(fmt.Sprintf("the step says nothing of %s", name))
	return nil
}

// find returns the object with a key that a step stores.
func find[T model.Object](step translate.Step, key model.Key) T {
	GinkgoHelper()
	at := slices.IndexFunc(step.Ops, func(op translate.Op) bool { return op.Key == key && op.Object != nil })
	Expect(at).NotTo(BeNumerically("<", 0), "%s does not exist", key.Path())
	return step.Ops[at].Object.(T)
}

// pems are certificates of the specs, made once.
var pems struct{ authority, cert, key, otherKey string }

var _ = BeforeSuite(func() {
	authority, err := testkit.NewAuthority("spec")
	Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example.com"}})
	Expect(err).NotTo(HaveOccurred())
	other, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example.com"}})
	Expect(err).NotTo(HaveOccurred())
	pems.authority, pems.cert, pems.key, pems.otherKey = authority.PEM, pair.Cert, pair.Key, other.Key
})
