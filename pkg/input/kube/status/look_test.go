package status

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("A look at all objects", func() {
	var (
		host  Cached
		seen  int64 // what this replica has built
		heard bool
		fault error
		log   bytes.Buffer
		look  func() ([]Object, bool)
	)
	ref := Ref{"GatewayHost", "shop", "web"}

	BeforeEach(func(ctx context.Context) {
		host = Cached{Object: Object{Ref: ref, UID: "1", ResourceVersion: 50}, Generation: 3}
		seen, heard, fault = 50, true, nil
		log.Reset()
		l := NewLooker(Sources{
			Proxies: []string{"gatehouse"},
			Objects: func(context.Context) ([]Cached, error) { return []Cached{host}, fault },
			Became: func() map[translate.Ref]*translate.Object {
				return map[translate.Ref]*translate.Object{translate.Ref(ref): {Generation: host.Generation, Proxies: []string{"gatehouse"}}}
			},
			Report: func() replicas.Report {
				return replicas.Report{Replica: "a", Seen: map[string]int64{"GatewayHost": seen}}
			},
			Others:        func() []replicas.Other { return nil },
			Heard:         func() bool { return heard },
			Installations: &Installations{self: "shop/lease", now: time.Now, known: map[string]*installation{}},
			Registry:      status.NewRegistry(), Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		look = func() ([]Object, bool) { return l.Look(context.WithoutCancel(ctx)) }
	})
	isPending := func() bool {
		GinkgoHelper()
		objects, ok := look()
		Expect(ok).To(BeTrue())
		Expect(objects).To(HaveLen(1))
		return objects[0].Pending
	}

	It("is pending until this replica has built everything", func() {
		Expect(isPending()).To(BeFalse())

		By("a status write is no new generation")
		host.ResourceVersion = 60
		Expect(isPending()).To(BeFalse())

		By("a new generation")
		host.ResourceVersion, host.Generation = 70, 4
		Expect(isPending()).To(BeTrue())
		seen = 70
		Expect(isPending()).To(BeFalse())

		By("another object with this name")
		host.ResourceVersion, host.UID = 80, "2"
		Expect(isPending()).To(BeTrue())
	})

	It("assumes that there may be replicas it has not read yet", func() {
		heard = false
		objects, _ := look()
		Expect(objects[0].Facts.Replicas).To(Equal([]conditions.Replica{{Name: "(others)", Unheard: true}, {Name: "a", Built: true}}))
		heard = true
		objects, _ = look()
		Expect(objects[0].Facts.Replicas).To(Equal([]conditions.Replica{{Name: "a", Built: true}}))
	})

	It("reports nothing while the objects cannot be listed, and logs it once", func() {
		fault = errors.New("no cache")
		for range 2 {
			_, ok := look()
			Expect(ok).To(BeFalse())
		}
		Expect(strings.Count(log.String(), "cannot be listed")).To(Equal(1))
		fault = nil
		Expect(isPending()).To(BeFalse())
		fault = errors.New("no cache")
		look()
		Expect(strings.Count(log.String(), "cannot be listed")).To(Equal(2))
	})
})
