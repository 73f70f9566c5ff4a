package pipeline_test

import (
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// shortened returns the change with the short names of all known types.
func shortened(change model.Change) model.Change {
	short := func(kind model.Kind, name string) string {
		if slices.Contains(model.ConfigTypes(kind), name) {
			return model.ShortType(name)
		}
		return name
	}
	change.Entries = slices.Clone(change.Entries)
	for i, e := range change.Entries {
		switch o := e.Object.(type) {
		case *model.Filter:
			f := *o
			f.Type = short(model.KindFilter, o.Type)
			change.Entries[i].Object = &f
		case *model.GlobalConfig:
			g := *o
			g.Type = short(model.KindGlobalConfig, o.Type)
			change.Entries[i].Object = &g
		}
	}
	return change
}

var _ = It("golden cases are the same with the short names of types", func() {
	for _, dir := range caseDirs() {
		in := readInput(filepath.Join(dir, "in.yaml"))
		in.Change = shortened(in.Change)
		short, long := buildInput(in), buildCase(dir)
		Expect(plain(short.envoy)).To(Equal(plain(long.envoy)), dir)
		Expect(plain(short.rateLimits)).To(Equal(plain(long.rateLimits)), dir)
		Expect(short.conditions).To(Equal(long.conditions), dir)
	}
})
