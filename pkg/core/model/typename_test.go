package model_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The short name of a type", func() {
	// Clients have stored these names: none is ever removed, or given to another type. A new type whose short name is
	// already here needs a long name that differs from it.
	It("stays what it was, and belongs to one type", func() {
		Expect(model.WrittenTypes(model.KindFilter)[len(model.ConfigTypes(model.KindFilter)):]).To(ConsistOf(
			"accesslog", "affinity", "anyof", "apikey", "basicauth", "bodylimit", "canary", "compress", "consumer", "cors", "csrf",
			"directresponse", "errorpage", "extauthz", "extproc", "fault", "grpcjson", "grpcweb", "headers", "host_rewrite", "ipaccess",
			"jwt", "lua", "maintenance", "mirror", "oidc", "ratelimit", "rbac", "redirect", "requestid", "tracing"))
		Expect(model.WrittenTypes(model.KindGlobalConfig)[len(model.ConfigTypes(model.KindGlobalConfig)):]).To(ConsistOf(
			"accesslog", "acme", "connections", "geoip", "globals", "metrics", "oauth", "proxyprotocol", "ratelimit", "refusals", "tracing"))
		Expect(model.WrittenTypes(model.KindList)).To(ConsistOf("addresses", "headers"))
	})

	It("means what the long name means, and what was written stays", func() {
		for _, name := range model.ConfigTypes(model.KindFilter) {
			short := (&model.Filter{Name: "f", Type: model.ShortType(name), Config: "{}"}).Parse()
			long := (&model.Filter{Name: "f", Type: name, Config: "{}"}).Parse()
			Expect(short.Type).To(Equal(name))
			Expect(short.Filter.Type).To(Equal(model.ShortType(name)))
			Expect(short.Spec).To(BeAssignableToTypeOf(long.Spec))
			for _, kind := range []model.Kind{model.KindRoute, model.KindService, model.KindProxy} {
				Expect(short.FitsOn(kind)).To(Equal(long.FitsOn(kind)), "%s on %s", name, kind)
			}
			Expect(short.ListType()).To(Equal(long.ListType()), name)
			refused, want := short.L4Refusal() != "", long.L4Refusal() != ""
			Expect(refused).To(Equal(want), name)
		}
		for _, name := range model.ConfigTypes(model.KindGlobalConfig) {
			g := (&model.GlobalConfig{Name: "g", Type: model.ShortType(name), Config: "{}"}).Parse()
			Expect(g.Type).To(Equal(name))
			Expect(g.GlobalConfig.Type).To(Equal(model.ShortType(name)))
		}
	})

	It("is that of no type if two would have it", func() {
		Expect(model.FindType([]string{"http_filter_a", "vh_filter_a", "vh_filter_b"}, "a")).To(BeEmpty())
		Expect(model.FindType([]string{"http_filter_a", "vh_filter_a", "vh_filter_b"}, "vh_filter_a")).To(Equal("vh_filter_a"))
		Expect(model.FindType([]string{"http_filter_a", "vh_filter_a", "vh_filter_b"}, "b")).To(Equal("vh_filter_b"))
	})

	// The field Type of a Filter or GlobalConfig may be the short name. These files compare that of parsed objects; a file
	// that compares others needs TypeName, and is not added here.
	It("is never compared as it was written", func() {
		compares := regexp.MustCompile(`\.Type (==|!=) model\.(Filter|GlobalConfig)[A-Z]`)
		found := map[string]bool{}
		for _, root := range []string{"../../../pkg", "../../../cmd"} {
			Expect(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
					return err
				}
				text, err := os.ReadFile(path)
				if compares.Match(text) {
					found[strings.TrimPrefix(filepath.ToSlash(path), "../../../pkg/")] = true
				}
				return err
			})).To(Succeed())
		}
		Expect(slices.Sorted(maps.Keys(found))).To(Equal([]string{
			"core/compile/telemetry.go", "core/filter/bodylimit/bodylimit.go", "core/filter/credential/credential.go",
			"core/filter/credential/login.go", "core/filter/grpc/json.go", "core/filter/mirror/mirror.go", "diagnostics/logintest/subject.go",
			"xds/pipeline/login.go", "xds/pipeline/scope.go",
		}))
	})

	It("is not that of another kind", func() {
		fields := (&model.Filter{Name: "f", Type: "oauth", Config: "{}"}).Validate()
		Expect(slices.Collect(func(yield func(string) bool) {
			for _, f := range fields {
				yield(f.Field)
			}
		})).To(Equal([]string{"Filter_type"}))
	})
})
