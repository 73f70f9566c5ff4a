package pipeline_test

import (
	"encoding/json"
	"os"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// canonicalListeners are the listeners of testdata/listeners. The first has everything that the settings of a process
// add to a listener, and is there in full. The others are differences to it: they lack some of it, so that a new
// filter changes only the first. The cases have differences to any of these.
var canonicalListeners = []struct {
	name, of string
	settings caseSettings
}{
	{"full", "https-0.0.0.0:8443", caseSettings{AccessLog: true, RateLimitSocket: "/run/ratelimit.sock"}},
	{"http", "http-0.0.0.0:8080", caseSettings{}},
	{"http-access-log", "http-0.0.0.0:8080", caseSettings{AccessLog: true}},
	{"http-rate-limits", "http-0.0.0.0:8080", caseSettings{RateLimitSocket: "/run/ratelimit.sock"}},
	{"https", "https-0.0.0.0:8443", caseSettings{}},
	{"https-access-log", "https-0.0.0.0:8443", caseSettings{AccessLog: true}},
}

// likeness describes a listener by its difference to a canonical one, or an element of a list by that to another.
type likeness struct {
	Like string         `json:"like"`
	With map[string]any `json:"with,omitempty"`
}

// madeListeners are the canonical listeners as the build makes them now.
var madeListeners = sync.OnceValue(func() (all []any) {
	for _, c := range canonicalListeners {
		in := readInput("testdata/listeners/in.yaml")
		in.Settings = c.settings
		for _, l := range buildInput(in).envoy["gw"].Listeners {
			if listener := plain(l).(map[string]any); listener["name"] == c.of {
				all = append(all, listener)
			}
		}
	}
	Expect(all).To(HaveLen(len(canonicalListeners)))
	return all
})

// canonical are the canonical listeners as their files have them, so that a case notices a change of its listener
// even if the canonical ones change in the same way. `make golden` writes these files too.
var canonical = sync.OnceValue(func() (all []any) {
	if *update {
		return madeListeners()
	}
	for i, c := range canonicalListeners {
		text, err := os.ReadFile("testdata/listeners/" + c.name + ".yaml")
		Expect(err).NotTo(HaveOccurred(), "run `make golden`")
		if i == 0 {
			var full any
			Expect(yaml.Unmarshal(text, &full)).To(Succeed())
			all = append(all, full)
			continue
		}
		var l likeness
		Expect(yaml.UnmarshalStrict(text, &l)).To(Succeed())
		all = append(all, apply(all[0], l.With))
	}
	return all
})

// likenessOf describes a listener by the most similar of some canonical ones, and checks that nothing is lost.
func likenessOf(listener any, canonical []any) (least likeness) {
	GinkgoHelper()
	var of any
	for i, c := range canonical {
		with, ok := difference(c, listener)
		Expect(ok).To(BeTrue())
		if of == nil || size(with) < size(least.With) {
			of, least = c, likeness{canonicalListeners[i].name, with}
		}
	}
	text := must(yaml.Marshal(least))
	var read likeness
	Expect(yaml.UnmarshalStrict(text, &read)).To(Succeed())
	Expect(string(must(yaml.Marshal(apply(of, read.With))))).To(Equal(string(must(yaml.Marshal(listener)))), "%s", text)
	return least
}

// knownLikenesses are those of the listeners of the cases so far, by their JSON. Few are different.
var knownLikenesses = map[string]json.RawMessage{}

// likenesses describes listeners by the canonical ones.
func likenesses(listeners []json.RawMessage) (list []json.RawMessage) {
	GinkgoHelper()
	for _, l := range listeners {
		key := asJSON(plain(l))
		if knownLikenesses[key] == nil {
			knownLikenesses[key] = must(json.Marshal(likenessOf(plain(l), canonical())))
		}
		list = append(list, knownLikenesses[key])
	}
	return list
}

var _ = It("golden listeners", func() {
	made := madeListeners()
	files := map[string]any{canonicalListeners[0].name + ".yaml": made[0]}
	for i, c := range canonicalListeners[1:] {
		files[c.name+".yaml"] = likenessOf(made[i+1], made[:1])
	}
	golden("testdata/listeners", files)
})
