package main

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

// newDatabase makes a data directory with a database in it, as the first start
// of a server does.
func newDatabase() (dir string) {
	GinkgoHelper()
	dir = GinkgoT().TempDir()
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{URL: "sqlite://" + filepath.Join(dir, "gatehouse.db")})
	Expect(err).NotTo(HaveOccurred())
	Expect(db.Close()).To(Succeed())
	return dir
}

// onData runs a command that works on the database in dir and has to say so.
func onData(dir string, args ...string) string {
	GinkgoHelper()
	r := run1("", append(args, "--data-dir", dir)...)
	Expect(r.code).To(BeZero(), r.stderr)
	Expect(r.stderr).To(Equal("using the database " + dir + "/gatehouse.db\n"))
	return r.stdout
}

const noDatabase = " (name the one that is in use with --data-dir or --database-url; the first start of a server makes a new one)\n"

var _ = Describe("token", func() {
	It("works on the database that the flags name, and on no other", func() {
		home, dir := GinkgoT().TempDir(), newDatabase()
		GinkgoT().Setenv("XDG_DATA_HOME", home)
		Expect(onData(dir, "token", "create", "ann", "--role", "admin")).To(MatchRegexp(`^gh_[A-Za-z0-9_-]{43}\n$`))
		Expect(os.ReadDir(home)).To(BeEmpty())

		list := run1("", "token", "list", "--database-url", "sqlite://"+dir+"/gatehouse.db")
		Expect(list.stdout).To(And(ContainSubstring("ann"), Not(ContainSubstring("gh_"))))
		onData(dir, "token", "revoke", "ann")
		Expect(onData(dir, "token", "list")).NotTo(ContainSubstring("ann"))
	})

	It("creates no database", func() {
		dir := GinkgoT().TempDir()
		Expect(run1("", "token", "create", "ann", "--role", "admin", "--data-dir", dir)).To(Equal(result{1, "",
			"gatehouse: the database file " + dir + "/gatehouse.db does not exist" + noDatabase}))
		Expect(run1("", "token", "list", "--data-dir", dir+"/none").code).To(Equal(1))
		Expect(os.ReadDir(dir)).To(BeEmpty())

		empty := filepath.Join(dir, "empty.db")
		Expect(os.WriteFile(empty, nil, 0o600)).To(Succeed())
		Expect(run1("", "token", "create", "ann", "--role", "admin", "--database-url", "sqlite://"+empty)).To(Equal(result{1, "",
			"gatehouse: the file " + empty + " is not a database of Gatehouse" + noDatabase}))
		Expect(os.ReadFile(empty)).To(BeEmpty())
	})

	It("creates no viewer token before the first admin token, unless --without-admin is set", func() {
		dir := newDatabase()
		refused := run1("", "token", "create", "ci", "--role", "viewer", "--data-dir", dir)
		Expect(refused.code).To(Equal(1))
		Expect(refused.stderr).To(HaveSuffix("gatehouse: no token with the role admin exists yet, and a token with another role cannot create one " +
			"(create one first: gatehouse token create NAME --role admin; or set --without-admin if the server has --api-admin-token-file)\n"))
		Expect(onData(dir, "token", "list")).NotTo(ContainSubstring("ci"))
		onData(dir, "token", "create", "ci", "--role", "viewer", "--without-admin")
		Expect(run1("", "token", "create", "board", "--role", "viewer", "--data-dir", dir).code).To(Equal(1), "a viewer token does not help")
		onData(dir, "token", "create", "ann", "--role", "admin")
		onData(dir, "token", "create", "board", "--role", "viewer")
	})

	It("says what a team may change", func() {
		flags := []string{"token", "create", "bob", "--role", "editor", "--tag", "a", "--tag", "b", "--host", "*.a.test,a.test", "--port", "53", "--port", "5432", "--max-objects", "7"}
		f := &fake{answers: map[string]reply{"POST /token": {status: 201, body: `{"name":"bob","role":"editor","token":"gh_secret"}`}}}
		f.serve()
		Expect(run1("", flags...).stdout).To(Equal("gh_secret\n"))
		Expect(f.bodies).To(Equal([]string{"Token_hosts=%2A.a.test%2Ca.test&Token_max_objects=7&Token_name=bob&Token_ports=53%2C5432&Token_role=editor&Token_tags=a%2Cb"}))
		GinkgoT().Setenv("GATEHOUSE_SERVER", "")
		dir := newDatabase()
		onData(dir, "token", "create", "ann", "--role", "admin")
		onData(dir, flags...)
		Expect(onData(dir, "token", "list", "-o", "json")).To(And(ContainSubstring(`"max_objects": 7`), ContainSubstring(`"a.test"`), ContainSubstring("5432")))
		Expect(onData(dir, "token", "list", "-o", "table")).To(MatchRegexp(`bob +editor +a,b `))
		Expect(run1("", "token", "create", "x", "--proxy", "gw", "--tag", "a").stderr).To(Equal("gatehouse: --tag is for tokens of the REST API with --role editor\n"))
	})

	It("calls the server unless a database is named", func() {
		f := &fake{answers: map[string]reply{
			"POST /token":       {status: 201, body: `{"name":"ann","role":"admin","token":"gh_secret"}`},
			"GET /token":        {status: 200, body: `{"data":{"core_db_token":[{"name":"ann","role":"admin","create_ts":"2026-11-21T15:01:54.615962+00:00","last_used_ts":null}]}}`},
			"DELETE /token/ann": {status: 200, body: `{"data":{"delete_core_db_token":{"affected_rows":1}}}`},
		}}
		f.serve()
		server := os.Getenv("GATEHOUSE_SERVER")
		using := "using the server " + server + "\n"
		token := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(token, []byte("gh_admin\n"), 0o600)).To(Succeed())

		Expect(run1("", "token", "create", "ann", "--role", "admin", "--token-file", token)).To(Equal(result{0, "gh_secret\n", using}))
		Expect(f.headers.Get("Authorization")).To(Equal("Bearer gh_admin"))
		Expect(f.bodies).To(Equal([]string{"Token_name=ann&Token_role=admin"}))
		Expect(run1("", "token", "list", "-o", "table")).To(Equal(result{0, "NAME  ROLE   TAGS  CREATED               LAST_USED\nann   admin  -     2026-11-21T15:01:54Z  never\n", using}))
		Expect(run1("", "token", "revoke", "ann")).To(Equal(result{0, "token \"ann\" is revoked\n", using}))

		By("even if the settings name a database, when a flag names the server")
		GinkgoT().Setenv("GATEHOUSE_DATA_DIR", GinkgoT().TempDir())
		Expect(run1("", "token", "list", "--server", server).stderr).To(Equal(using))
		Expect(run1("", "token", "list")).To(Equal(result{2, "",
			"gatehouse: GATEHOUSE_SERVER names a server, and the settings name a database: choose one with --server, or with --data-dir or --database-url\n"}))
		GinkgoT().Setenv("GATEHOUSE_SERVER", "")
		dir := newDatabase()
		GinkgoT().Setenv("GATEHOUSE_DATA_DIR", dir)
		Expect(run1("", "token", "list").stderr).To(Equal("using the database " + dir + "/gatehouse.db\n"))
	})

	It("creates, lists and revokes tokens of the xDS port, through a server", func() {
		made := `{"name":"one","token":"ghx_secret"}`
		listed := `{"name":"one","proxy":"edge","create_ts":"2026-11-21T15:01:54.615962+00:00","last_used_ts":"2026-11-22T10:00:00.000000+00:00"}`
		engines := `{"name":"one","create_ts":"2026-11-21T15:01:54.615962+00:00","last_used_ts":null}`
		gone := reply{status: 200, body: `{"data":{"delete_core_db_token":{"affected_rows":1}}}`}
		f := &fake{answers: map[string]reply{
			"POST /proxy/edge/token": {status: 201, body: made}, "POST /ratelimit/token": {status: 201, body: made},
			"GET /proxy/edge/token":        {status: 200, body: `{"data":{"core_db_token":[` + listed + `]}}`},
			"GET /ratelimit/token":         {status: 200, body: `{"data":{"core_db_token":[` + engines + `]}}`},
			"DELETE /proxy/edge/token/one": gone, "DELETE /ratelimit/token/one": gone,
		}}
		f.serve()
		using := "using the server " + os.Getenv("GATEHOUSE_SERVER") + "\n"
		for flag, want := range map[string][3]string{
			"--proxy=edge": {"one   2026-11-21T15:01:54Z  2026-11-22T10:00:00Z\n", listed, `of proxy "edge"`},
			"--ratelimit":  {"one   2026-11-21T15:01:54Z  never\n", engines, "of the rate-limit engine"},
		} {
			Expect(run1("", "token", "create", "one", flag)).To(Equal(result{0, "ghx_secret\n", using}))
			Expect(run1("", "token", "list", flag, "-o", "table")).To(Equal(result{0, "NAME  CREATED               LAST_USED\n" + want[0], using}))
			Expect(run1("", "token", "list", flag).stdout).To(MatchJSON("[" + want[1] + "]"))
			Expect(run1("", "token", "revoke", "one", flag)).To(Equal(result{0, "token \"one\" " + want[2] + " is revoked\n", using}))
			Expect(run1("", "__complete", "token", "revoke", flag, "o").stdout).To(Equal("one\n:4\n"))
			Expect(run1("", "__complete", "token", "revoke", flag, "x").stdout).To(Equal(":4\n"))
		}
		Expect(f.bodies).To(HaveEach(BeElementOf("Token_name=one", "")))
	})

	It("creates, lists and revokes tokens of the xDS port, in a database", func() {
		dir := newDatabase()
		missing := run1("", "token", "create", "one", "--proxy", "edge", "--data-dir", dir)
		Expect([]any{missing.code, missing.stdout}).To(Equal([]any{1, ""}))
		Expect(missing.stderr).To(HaveSuffix("gatehouse: proxy \"edge\" does not exist\n"))
		Expect(run1("", "token", "list", "--proxy", "edge", "--data-dir", dir).code).To(Equal(1))
		Expect(onData(dir, "token", "list", "--ratelimit")).To(Equal("[]\n"))

		Expect(onData(dir, "token", "create", "one", "--ratelimit")).To(MatchRegexp(`^ghx_[A-Za-z0-9_-]{43}\n$`))
		Expect(onData(dir, "token", "list", "--ratelimit", "-o", "table")).To(MatchRegexp(`^NAME  CREATED               LAST_USED\none   20\S+Z  never\n$`))
		Expect(onData(dir, "token", "list", "--ratelimit", "-o", "json")).To(MatchRegexp(`"name": "one",\n +"create_ts": "20\S+",\n +"last_used_ts": null`))
		Expect(onData(dir, "token", "list")).NotTo(ContainSubstring("one"), "it does not call the API")
		twice := run1("", "token", "create", "one", "--ratelimit", "--data-dir", dir)
		Expect(twice.stderr).To(HaveSuffix("gatehouse: token \"one\" of the rate-limit engine already exists (choose another name, or delete the existing one first)\n"))
		Expect(onData(dir, "token", "revoke", "one", "--ratelimit")).To(Equal("token \"one\" of the rate-limit engine is revoked\n"))
		Expect(run1("", "token", "revoke", "one", "--ratelimit", "--data-dir", dir).stderr).To(HaveSuffix("gatehouse: token \"one\" of the rate-limit engine does not exist\n"))
		Expect(run1("", "token", "create", "a b", "--ratelimit", "--data-dir", dir).stderr).To(ContainSubstring("Token_name"))
	})

	It("says what to do when no server answers", func() {
		const server = "http://127.0.0.1:1"
		r := run1("", "token", "create", "ann", "--role", "admin", "--server", server)
		Expect([]any{r.code, r.stdout}).To(Equal([]any{1, ""}))
		Expect(r.stderr).To(And(HavePrefix("gatehouse: calling "+server+": "), HaveSuffix("; if no server runs, name the database: --data-dir or --database-url\n")))
	})

	It("refuses combinations that make no sense", func() {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"list", "--server", "http://127.0.0.1:1", "--data-dir", "data"}, "--server is for a server and --data-dir for a database: use one of them"},
			{[]string{"list", "--token-file", "token", "--database-url", "sqlite:///x.db"}, "--token-file is for a server and --database-url for a database: use one of them"},
			{[]string{"create", "ci", "--role", "viewer", "--without-admin"},
				"--without-admin is for --data-dir and --database-url: a server knows whether it has --api-admin-token-file"},
			{[]string{"create", "ci"}, "specify --role admin, editor or viewer for a token of the REST API, or --proxy PROXY or --ratelimit for a token of the xDS port"},
			{[]string{"create", "ci", "--role", "viewer", "--proxy", "edge"},
				"--role and --without-admin are for tokens of the REST API: a token of a proxy or of the rate-limit engine has no role"},
			{[]string{"create", "ci", "--proxy", ""}, "--proxy is empty: give the name of a proxy"},
			{[]string{"revoke", "ci", "--proxy", "edge", "--ratelimit"},
				"if any flags in the group [proxy ratelimit] are set none of the others can be; [proxy ratelimit] were all set"},
		} {
			Expect(run1("", append([]string{"token"}, c.args...)...)).To(Equal(result{2, "", "gatehouse: " + c.want + "\n"}))
		}
	})
})
