package kube_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// api answers requests for Secrets when it is told to.
type api struct {
	client.Reader
	begun  chan string
	answer chan string // "" means that it is answered

	mu    sync.Mutex
	value string
}

func (a *api) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	a.mu.Lock()
	value := a.value
	a.mu.Unlock()
	select {
	case a.begun <- key.Name:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case fault := <-a.answer:
		if fault != "" {
			return errors.New(fault)
		}
		*obj.(*corev1.Secret) = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{"ca.crt": []byte(value)}}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *api) set(value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.value = value
}

// worldWith returns a world in which n hosts name the Secrets s0, s1 ....
func worldWith(n int) *translate.World {
	proxy := model.NewProxy()
	proxy.Name = "gatehouse"
	w := translate.New([]*model.Proxy{proxy}, nil)
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		w.Upsert(&gatewayv1.GatewayHost{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: gatewayv1.GatewayHostSpec{
			VirtualHost: gatewayv1.VirtualHost{FQDN: name + ".example", TLS: &gatewayv1.TLS{SecretName: gatewayv1.ObjectName(name)}},
		}})
	}
	return w
}

var _ = Describe("The reading of Secrets", func() {
	first := translate.Ref{Kind: translate.KindSecret, Namespace: "shop", Name: "s0"}
	start := func() (*api, kube.Secrets, <-chan struct{}) {
		a := &api{begun: make(chan string), answer: make(chan string)}
		s, answered := kube.NewSecrets(a)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		DeferCleanup(func() {
			cancel()
			Eventually(ended).Should(Receive(BeNil()))
		})
		return a, s, answered
	}

	It("is repeated if a Secret changes after the request was sent", func() {
		a, s, answered := start()
		w := worldWith(1)
		Expect(s.Lacking(w)).To(Equal(1))
		Eventually(a.begun).Should(Receive(Equal("s0")))
		Expect(s.Lacking(w)).To(Equal(1), "while the request is on the way, no other is sent")
		a.set("newer")
		s.Changed(w, first)
		Eventually(a.answer).Should(BeSent(""))
		Eventually(a.begun).Should(Receive(Equal("s0")))
		Eventually(a.answer).Should(BeSent(""))
		Eventually(answered).Should(Receive())
		Consistently(a.begun).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
		s.Take(w)
		Expect(s.Lacking(w)).To(BeZero())
	})

	It("fails for all that wait when one request is not answered", func() {
		a, s, _ := start()
		w := worldWith(50)
		Expect(s.Lacking(w)).To(Equal(50))
		for range 8 {
			Eventually(a.begun).Should(Receive())
		}
		for range 8 {
			Eventually(a.answer).Should(BeSent("no answer"))
		}
		sent := 8
		Eventually(func() int {
			select {
			case <-a.begun: // it had begun before the first failure was known
				sent++
				a.answer <- "no answer"
			default:
			}
			s.Take(w)
			return s.Lacking(w)
		}).Should(BeZero())
		Expect(sent).To(BeNumerically("<=", 16))
		Expect(s.Due(w, true, 10*time.Second)).To(HaveLen(50), "and they are tried again")
	})

	It("is repeated from time to time if no watch tells of changes", func() {
		a, s, _ := start()
		w := worldWith(1)
		Expect(s.Lacking(w)).To(Equal(1))
		Eventually(a.begun).Should(Receive())
		Expect(s.Lacking(w)).To(Equal(1))
		Eventually(a.answer).Should(BeSent(""))
		Consistently(a.begun).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "it was lacking, and has not changed")
		Eventually(func() int { s.Take(w); return s.Lacking(w) }).Should(BeZero())
		Expect(s.Due(w, true, time.Hour)).To(BeEmpty())
		Expect(s.Due(w, false, 19*time.Second)).To(BeEmpty())
		Expect(s.Due(w, false, 21*time.Second)).To(Equal([]translate.Ref{first}))
	})
})
