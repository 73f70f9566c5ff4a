package conditions_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
)

func TestConditions(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "conditions")
}

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later = start.Add(time.Hour)
)

// live is generation 4 of an object that both Envoys have.
func live() conditions.Facts {
	return conditions.Facts{
		Generation: 4, Proxies: []string{"gatehouse"},
		Replicas: []conditions.Replica{{Name: "a", Built: true, Envoys: 1}, {Name: "b", Built: true, Envoys: 1}},
	}
}

func condition(name string, status metav1.ConditionStatus, reason, message string, generation int64, since time.Time) metav1.Condition {
	return metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(since),
	}
}

// good returns the conditions of an object that every Envoy has in a generation.
func good(generation int64) []metav1.Condition {
	return []metav1.Condition{
		condition("Accepted", "True", "Accepted", "it is a part of the configuration", generation, start),
		condition("ResolvedRefs", "True", "ResolvedRefs", "every object that it names exists and may be used", generation, start),
		condition("Programmed", "True", "Programmed", "every connected Envoy has it", generation, start),
	}
}

// short returns a list of conditions as "Type=Status Reason: Message", without those that are
// the same in good.
func short(list []metav1.Condition) []string {
	said := make([]string, 0, len(list))
	for i, c := range list {
		if usual := good(c.ObservedGeneration); i < len(usual) && c.Reason == usual[i].Reason && c.Message == usual[i].Message && c.Status == usual[i].Status {
			continue
		}
		said = append(said, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return said
}

var _ = Describe("The conditions of an object", func() {
	It("say that every Envoy has it", func() {
		list, again := conditions.Conditions(live(), nil, start)
		Expect(list).To(Equal(good(4)))
		Expect(again).To(BeZero())
	})

	DescribeTable("report what is wrong with it", func(change func(*conditions.Facts), expected ...string) {
		f := live()
		change(&f)
		list, _ := conditions.Conditions(f, nil, start)
		Expect(short(list)).To(HaveExactElements(expected))
		for _, c := range list {
			Expect(c.ObservedGeneration).To(Equal(int64(4)), c.Type)
		}
	},
		Entry("a field with an invalid value", func(f *conditions.Facts) {
			f.Problems = []conditions.Problem{{"spec.routes[1].conditions[0].regex", "Invalid", "missing )"}}
		}, "Accepted=False Invalid: spec.routes[1].conditions[0].regex: missing )",
			"Programmed=False Invalid: spec.routes[1].conditions[0].regex: missing )"),
		Entry("a missing Service", func(f *conditions.Facts) {
			f.Problems = []conditions.Problem{
				{"spec.routes[0].services[0].name", "RefNotFound", `there is no Service "web" in namespace shop`},
				{"spec.routes[0]", model.NoUpstream, "the route has no upstream and answers 503"},
			}
			f.Problems = conditions.WithMirror(f.Problems[:1], f.Problems[1:])
		}, `ResolvedRefs=False RefNotFound: spec.routes[0].services[0].name: there is no Service "web" in namespace shop`,
			`Programmed=False RefNotFound: spec.routes[0].services[0].name: there is no Service "web" in namespace shop`),
		Entry("a reference that is not permitted, and an unknown reason", func(f *conditions.Facts) {
			f.Problems = []conditions.Problem{{"spec.tls.secretName", "RefNotPermitted", "no ReferenceGrant"}, {"", "Odd", "odd"}}
		}, "Accepted=False Odd: odd", "ResolvedRefs=False RefNotPermitted: spec.tls.secretName: no ReferenceGrant", "Programmed=False Odd: odd"),
		Entry("more problems than a message holds", func(f *conditions.Facts) {
			for _, p := range []string{"a", "b", "c", "d", "e"} {
				f.Problems = append(f.Problems, conditions.Problem{p, "Invalid", "no"})
			}
		}, "Accepted=False Invalid: a: no; b: no; c: no; and 2 more", "Programmed=False Invalid: a: no; b: no; c: no; and 2 more"),
		Entry("a warning closes nothing", func(f *conditions.Facts) {
			f.Problems = []conditions.Problem{{"", model.ProviderFailing, "the provider is away"}}
		}, "Accepted=True Accepted: it is a part of the configuration; ProviderFailing: the provider is away"),
		Entry("nothing uses it", func(f *conditions.Facts) { f.Proxies = nil }, "Programmed=False NotUsed: no GatewayHost uses it"),
		Entry("an Envoy refuses it, another waits", func(f *conditions.Facts) {
			f.Replicas[0].Lacks = []conditions.Lack{{Envoy: "10.0.0.1:5", Message: "waits for cluster web"}}
			f.Replicas[1].Lacks = []conditions.Lack{{Envoy: "10.0.0.2:6", Refused: true, Message: "bad regex"}}
		}, "Programmed=False Refused: the Envoy at 10.0.0.2:6 (replica b) refused it: bad regex"),
		Entry("Envoys lack it", func(f *conditions.Facts) {
			f.Replicas[0].Lacks = []conditions.Lack{{Envoy: "10.0.0.1:5", Message: "waits for cluster web"}}
			f.Replicas[1].Lacks = []conditions.Lack{{Envoy: "10.0.0.2:6"}}
		}, "Programmed=False Waiting: the Envoy at 10.0.0.1:5 (replica a) waits for cluster web; the Envoy at 10.0.0.2:6 (replica b) has not answered yet"),
		Entry("a replica has not built it", func(f *conditions.Facts) { f.Replicas[1].Built = false },
			"Programmed=False Waiting: replica b has not built it yet"),
		Entry("a replica has not built it, and has no Envoys", func(f *conditions.Facts) { f.Replicas[1] = conditions.Replica{Name: "b"} }),
		Entry("a replica is not heard from", func(f *conditions.Facts) { f.Replicas[1] = conditions.Replica{Name: "b", Unheard: true} },
			"Programmed=Unknown ReplicaUnheard: replica b is not heard: the state of its Envoys is unknown"),
		Entry("a replica with Envoys is not heard from", func(f *conditions.Facts) {
			f.Replicas[1] = conditions.Replica{Name: "b", Unheard: true, Envoys: 2}
		}, "Programmed=Unknown ReplicaUnheard: replica b is not heard: the state of its Envoys is unknown"),
		Entry("more Envoys refuse it than a message holds", func(f *conditions.Facts) {
			for _, name := range []string{"v", "w", "x", "y", "z"} {
				f.Replicas[0].Lacks = append(f.Replicas[0].Lacks, conditions.Lack{Envoy: name, Refused: true, Message: "no"})
			}
		}, "Programmed=False Refused: the Envoy at v (replica a) refused it: no; the Envoy at w (replica a) refused it: no; "+
			"the Envoy at x (replica a) refused it: no; and 2 more"),
		Entry("more Envoys lack it than a message holds", func(f *conditions.Facts) {
			for _, name := range []string{"v", "w", "x", "y", "z"} {
				f.Replicas[0].Lacks = append(f.Replicas[0].Lacks, conditions.Lack{Envoy: name, Message: "waits"})
			}
		}, "Programmed=False Waiting: the Envoy at v (replica a) waits; the Envoy at w (replica a) waits; the Envoy at x (replica a) waits; and 2 more"),
		Entry("no Envoy is connected", func(f *conditions.Facts) { f.Replicas[0].Envoys, f.Replicas[1].Envoys = 0, 0 },
			"Programmed=False NotConnected: no Envoy of proxy gatehouse is connected"),
	)

	// For a generation that every Envoy has had, whatever happens elsewhere.
	DescribeTable("stay unchanged", func(change func(*conditions.Facts), again time.Duration) {
		f := live()
		change(&f)
		list, after := conditions.Conditions(f, good(4), later)
		Expect(list).To(Equal(good(4)))
		Expect(after).To(Equal(again))
	},
		Entry("a replica is building", func(f *conditions.Facts) { f.Replicas[1].Built = false }, time.Duration(0)),
		Entry("a replica is not heard from", func(f *conditions.Facts) {
			f.Replicas = []conditions.Replica{{Name: "b", Unheard: true, Envoys: 1, Lacks: []conditions.Lack{{Envoy: "x", Refused: true, For: time.Hour}}}}
			f.Absent = time.Hour
		}, time.Duration(0)),
		Entry("an Envoy has just started", func(f *conditions.Facts) {
			f.Replicas[1].Lacks = []conditions.Lack{{Envoy: "x", For: 4 * time.Second}, {Envoy: "y", For: 7 * time.Second}}
		}, 3*time.Second),
		Entry("all Envoys reconnect", func(f *conditions.Facts) {
			f.Replicas, f.Absent = f.Replicas[:1], 12*time.Second
			f.Replicas[0].Envoys = 0
		}, 18*time.Second),
	)

	DescribeTable("change if this object is concerned", func(change func(*conditions.Facts), expected string) {
		f := live()
		change(&f)
		list, again := conditions.Conditions(f, good(4), later)
		Expect(short(list)).To(Equal([]string{expected}))
		Expect(list[2].LastTransitionTime.Time).To(Equal(later))
		Expect(list[0].LastTransitionTime.Time).To(Equal(start))
		Expect(again).To(BeZero())
	},
		Entry("a new generation", func(f *conditions.Facts) { f.Generation, f.Replicas[0].Built = 5, false }, "Programmed=False Waiting: replica a has not built it yet"),
		Entry("an Envoy refuses it", func(f *conditions.Facts) {
			f.Replicas[0].Lacks = []conditions.Lack{{Envoy: "x", Refused: true, Message: "no"}}
		}, "Programmed=False Refused: the Envoy at x (replica a) refused it: no"),
		Entry("an Envoy lacks it for a long time", func(f *conditions.Facts) {
			f.Replicas[0].Lacks = []conditions.Lack{{Envoy: "x", For: 10 * time.Second}}
		},
			"Programmed=False Waiting: the Envoy at x (replica a) has not answered yet"),
		Entry("no Envoy comes back", func(f *conditions.Facts) {
			f.Replicas[0].Envoys, f.Replicas[1].Envoys, f.Absent = 0, 0, 30*time.Second
		}, "Programmed=False NotConnected: no Envoy of proxy gatehouse is connected"),
	)

	It("allow no grace period for a generation that some Envoys never had", func() {
		f, before := live(), good(4)
		before[2] = condition("Programmed", "False", "Waiting", "replica a has not built it yet", 4, start)
		f.Replicas[0].Lacks = []conditions.Lack{{Envoy: "x", For: time.Second}}
		list, again := conditions.Conditions(f, before, later)
		Expect(short(list)).To(Equal([]string{"Programmed=False Waiting: the Envoy at x (replica a) has not answered yet"}))
		Expect(again).To(BeZero())
	})

	It("keep the time of the last transition, and conditions of others", func() {
		before := append(good(3), condition("Verified", "True", "ByHand", "", 1, start))
		list, _ := conditions.Conditions(live(), before, later)
		Expect(list).To(Equal(append(good(4), condition("Verified", "True", "ByHand", "", 1, start))))
	})

	It("have messages of limited length", func() {
		f := live()
		f.Problems = []conditions.Problem{{"", "Invalid", strings.Repeat("ü", 3000)}}
		list, _ := conditions.Conditions(f, nil, start)
		Expect(list[0].Message).To(Equal(strings.Repeat("ü", 1022) + "..."))
	})
})

var _ = DescribeTable("A condition of the mirror", func(code string, told bool) {
	p, ok := conditions.FromMirror(model.Condition{Code: code, Message: "m"}, "spec")
	Expect(ok).To(Equal(told))
	Expect(p).To(Equal(conditions.Problem{Path: "spec", Reason: code, Message: "m"}))
},
	Entry(nil, model.Quarantined, true),
	Entry(nil, model.HostConflict, true),
	Entry(nil, model.NoCertificate, true),
	Entry("a count of failed logins", model.LoginFailing, false),
	Entry(nil, model.Failing, false),
)

var _ = Describe("Two lists of conditions", func() {
	It("are compared", func() {
		other := good(4)
		other[0].LastTransitionTime = metav1.NewTime(later)
		Expect(conditions.Equal(good(4), other)).To(BeTrue())
		other[0].Message = "other"
		Expect(conditions.Equal(good(4), other)).To(BeFalse())
		Expect(conditions.SayTheSame(good(4), other)).To(BeTrue())
		Expect(conditions.SayTheSame(good(4), good(5))).To(BeFalse())
		Expect(conditions.SayTheSame(good(4), good(4)[:2])).To(BeFalse())
		other = good(4)
		other[2].Reason = "Other"
		Expect(conditions.SayTheSame(good(4), other)).To(BeFalse())
		other = good(4)
		other[2].Status = metav1.ConditionUnknown
		Expect(conditions.SayTheSame(good(4), other)).To(BeFalse())
	})
})

var _ = Describe("The problems of the mirror", func() {
	noUpstream := conditions.Problem{Path: "spec.routes[0]", Reason: model.NoUpstream, Message: "it answers 503"}
	invalid := conditions.Problem{Path: "spec.routes[0]", Reason: "Invalid", Message: "no"}

	It("are listed after those of the translation, each once", func() {
		Expect(conditions.WithMirror([]conditions.Problem{invalid}, []conditions.Problem{noUpstream, invalid, noUpstream})).
			To(Equal([]conditions.Problem{invalid, noUpstream}))
	})
})

var _ = Describe("The Envoys of an object", func() {
	It("are counted at the replicas that are heard from", func() {
		f := live()
		f.Replicas[0].Envoys, f.Replicas[0].Lacks = 3, []conditions.Lack{{Envoy: "x"}}
		f.Replicas = append(f.Replicas,
			conditions.Replica{Name: "c", Built: true, Unheard: true, Envoys: 10}, conditions.Replica{Name: "d", Envoys: 20})
		Expect(f.Connected()).To(Equal(24))
		n, ok := f.Have()
		Expect(ok).To(BeTrue())
		Expect(n).To(Equal(3), "the others lack it, are not heard from, or their replica has not built it")
	})

	It("are not counted for closed or unused objects", func() {
		f := live()
		f.Proxies = nil
		_, ok := f.Have()
		Expect(ok).To(BeFalse())
		f = live()
		f.Problems = []conditions.Problem{{"", "RefNotFound", "a route of it answers 503"}}
		_, ok = f.Have()
		Expect(ok).To(BeTrue())
		f.Problems = []conditions.Problem{{"", "Invalid", "no"}}
		_, ok = f.Have()
		Expect(ok).To(BeFalse())
	})
})
