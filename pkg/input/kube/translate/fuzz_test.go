package translate_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// FuzzObjects reads two odd objects. It expects only valid objects in the store, and none once the
// odd ones are gone.
func FuzzObjects(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"virtualhost":{"fqdn":"*","tls":{"secretName":"s","clientCASecret":{"name":"s"}}},"filters":[{"name":"odd"}],"routes":[{"conditions":[{"regex":"/[","headers":[{"name":"a"}]}],"services":[{"name":"odd","port":80,"weight":0,"protocol":"tls","tls":{"caSecret":{"name":"s"}}}],"retries":{"attempts":1,"backoff":"1x"}}]}}`,
		`{"spec":{"type":"http_filter_oidc","routeFilterConfig":{"config":"{\"client_id\":\"x\",\"client_secret\":\"odd\",\"redirect_uri\":\"/cb\",\"issuer\":\"https://a.example\",\"cookie_secret\":\"s\",\"upstream\":\"odd.80\"}"}}}`,
		`{"spec":{"type":"globalconfig_oauth","config":"{\"openid_connect\":{\"provider\":{\"issuer\":\"https://a.example\"},\"client_id\":\"x\",\"client_secret\":\"s\",\"hmac_secret\":\"s\",\"redirect_url\":\"/cb\",\"redirect_path_matcher\":\"/cb\"},\"external_oauth_service\":{\"name\":\"odd\",\"port\":80}}"}}`,
		`{"spec":{"from":[{"kind":"GatewayHost","namespace":"shop"}],"to":[{"kind":"Secret"}]}}`,
		`{"metadata":{"annotations":{"gateway.gatehouse.dev/upstream":"{}"}},"spec":{"type":"ExternalName","externalName":"a","ports":[{"port":80,"targetPort":"x"}]}}`,
		`{"metadata":{"labels":{"kubernetes.io/service-name":"odd"}},"addressType":"IPv4","ports":[{"port":80}],"endpoints":[{"addresses":["10.0.0.1"]},{}]}`,
		`{"data":{"tls.crt":"AAAA","tls.key":"AAAA"}}`, `{}`,
	} {
		for kind := range uint8(7) {
			f.Add(kind, []byte(seed), kind+1, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind1 uint8, text1 []byte, kind2 uint8, text2 []byte) {
		w := translate.New(proxies("gatehouse"), nil)
		w.Take()
		var odd []metav1.Object
		for kind, text := range map[uint8][]byte{kind1 % 7: text1, kind2 % 7: text2} {
			object := []metav1.Object{
				&gatewayv1.GatewayHost{}, &gatewayv1.RouteFilter{}, &gatewayv1.GlobalConfig{}, &gatewayv1.ReferenceGrant{},
				&corev1.Service{}, &discoveryv1.EndpointSlice{}, &corev1.Secret{},
			}[kind]
			if json.Unmarshal(text, object) != nil {
				continue
			}
			object.SetNamespace("shop")
			object.SetName("odd")
			odd = append(odd, object)
			w.Upsert(object)
		}
		for range 3 {
			for _, ref := range w.Settle() {
				w.Upsert(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}, Data: map[string][]byte{"value": []byte("x")}})
			}
		}
		made := map[model.Key]bool{}
		for _, op := range w.Take().Ops {
			if wrong := op.Object.Validate(); len(wrong) > 0 {
				t.Errorf("%s is not valid: %v", op.Key.Path(), wrong)
			}
			for _, used := range model.Uses(op.Object) {
				if !made[used] {
					t.Errorf("%s names %s, which is not there", op.Key.Path(), used.Path())
				}
			}
			made[op.Key] = true
		}
		for _, object := range odd {
			w.Delete(refOf(object))
		}
		for _, op := range w.Take().Ops {
			if op.Object != nil {
				t.Errorf("%s is put when everything goes", op.Key.Path())
			}
			delete(made, op.Key)
		}
		for key := range made {
			t.Errorf("%s stays when everything is gone", key.Path())
		}
	})
}
