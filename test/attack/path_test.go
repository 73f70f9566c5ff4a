package attack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// pathTry is a path that may bypass the route /admin, and its expected result: guarded,
// a status, or the path that the backend receives.
type pathTry struct {
	target string
	want   string
}

const guarded = "guarded"

func pathTries() []pathTry {
	return []pathTry{
		{"/admin", guarded},
		{"/./admin", guarded},
		{"//admin", guarded},
		{"/x/../admin", guarded},
		{"/%61dmin", guarded},
		{"/x/%2e%2e/admin", guarded},
		{"/x/..;a=b/admin", guarded},
		{"/x/%2e%2e;a=b/admin", "400"},
		{"/x/.%2E;/admin", "400"},
		{"/%2e;/admin", "400"},
		{`/\admin`, guarded},
		{"/%2fadmin", "307"},
		{"/x%2f..%2fadmin", "307"},
		{"/x/..%5cadmin", "307"},
		{"/admin%00", "400"},
		// What docs/routing.md says about backends that interpret a path further.
		{"/Admin", "/Admin"},
		{"/admin;x", "/admin;x"},
		{"/%2561dmin", "/%2561dmin"},
		{"/admin/", guarded},
		{"/admin/x", guarded},
		{"/admin?x=/..", guarded},
		{"/admin/.", guarded},
		{"/admin/..;/admin", guarded},
		{"/.;/admin", guarded},
		{"/.//..//admin", guarded},
		{`/x\..\admin`, guarded},
		{"/%2e/admin", guarded},
		{"/%61%64%6D%69%6e", guarded},
		{"/../../admin", guarded},
		{"/admin#x", "400"},
		{"/admin%2f", "307"},
		{"/admin%5c..", "307"},
		{"/%252fadmin", "/%252fadmin"},
		{"/x%252f..%252fadmin", "/x%252f..%252fadmin"},
		{"/%25%36%31dmin", "/%2561dmin"},
		{"/%%36%31dmin", "/%2561dmin"},
		{"/%c0%afadmin", "/%c0%afadmin"},
		{"/ADMIN", "/ADMIN"},
		{"/admin%20", "/admin%20"},
		{"/admin%09", "/admin%09"},
		{"/admin%0a", "/admin%0a"},
		{"/admin%3bx", "/admin%3bx"},
		{"/admin%3f", "/admin%3f"},
		{"/admin%23", "/admin%23"},
		{"/admin.", "/admin."},
		{"/admin.json", "/admin.json"},
		{"/admin~", "/admin~"},
		{"/;x/admin", "/;x/admin"},
		{"/x;/../admin", guarded},
		{"/x/...;/admin", "/x/...;/admin"},
		{"/administrator", "/administrator"},
	}
}

var _ = Describe("A path", func() {
	It("matches its route however it is written, or the backend receives a different path", func(ctx SpecContext) {
		gw.addService(ctx, "paths", "paths.test")
		gw.add(ctx, "/service/paths/route", "Route_Name=admin", "Route_prefix=/admin",
			`Route_config={"match":"segment"}`) // without an upstream it answers 503
		gw.link(ctx, "/proxy/gw/service/paths?wait=applied")
		for _, try := range some(15, pathTries()) {
			a := gw.raw(ctx, "GET "+try.target+" HTTP/1.1", "Host: paths.test")
			got := fmt.Sprint(a.Status)
			switch a.Status {
			case http.StatusServiceUnavailable:
				got = guarded
			case http.StatusOK:
				var echo testkit.Echo
				Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
				got = echo.Path
			}
			Expect(got).To(Equal(try.want), try.target)
			if a2 := gw.raw2(ctx, ":method: GET", ":scheme: http", ":path: "+try.target, ":authority: paths.test"); a2.Status != dead {
				Expect(a2.Status).To(Equal(a.Status), try.target+" in HTTP/2")
			}
		}
	}, SpecTimeout(2*time.Minute))
})
