package main

import (
	"context"
	"net"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/store/sqlstore"
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

	It("makes no database", func() {
		dir := GinkgoT().TempDir()
		Expect(run1("", "token", "create", "ann", "--role", "admin", "--data-dir", dir)).To(Equal(result{1, "",
			"gatehouse: the database file " + dir + "/gatehouse.db does not exist" + noDatabase}))
		Expect(run1("", "token", "list", "--data-dir", dir+"/none").code).To(Equal(1))
		Expect(os.ReadDir(dir)).To(BeEmpty())

		empty := filepath.Join(dir, "empty.db")
		Expect(os.WriteFile(empty, nil, 0o600)).To(Succeed())
		Expect(run1("", "token", "create", "ann", "--role", "admin", "--database-url", "sqlite://"+empty)).To(Equal(result{1, "",
			"gatehouse: the file " + empty + " holds no database of Gatehouse" + noDatabase}))
		Expect(os.ReadFile(empty)).To(BeEmpty())
	})

	It("makes none of a viewer while there is none of an admin, unless told so", func() {
		dir := newDatabase()
		refused := run1("", "token", "create", "ci", "--role", "viewer", "--data-dir", dir)
		Expect(refused.code).To(Equal(1))
		Expect(refused.stderr).To(HaveSuffix("gatehouse: there is no token with the role admin yet, and with a viewer's alone nobody could change anything " +
			"(make one first: gatehouse token create NAME --role admin; or give --without-admin if the server has --api-admin-token-file)\n"))
		Expect(onData(dir, "token", "list")).NotTo(ContainSubstring("ci"))
		onData(dir, "token", "create", "ci", "--role", "viewer", "--without-admin")
		Expect(run1("", "token", "create", "board", "--role", "viewer", "--data-dir", dir).code).To(Equal(1), "one of a viewer does not help")
		onData(dir, "token", "create", "ann", "--role", "admin")
		onData(dir, "token", "create", "board", "--role", "viewer")
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
		Expect(run1("", "token", "list")).To(Equal(result{0, "NAME  ROLE   CREATED               LAST_USED\nann   admin  2026-11-21T15:01:54Z  never\n", using}))
		Expect(run1("", "token", "revoke", "ann")).To(Equal(result{0, "token \"ann\" is revoked\n", using}))

		By("also where the settings name one, when a flag names the server")
		GinkgoT().Setenv("GATEHOUSE_DATA_DIR", GinkgoT().TempDir())
		Expect(run1("", "token", "list", "--server", server).stderr).To(Equal(using))
		Expect(run1("", "token", "list")).To(Equal(result{2, "",
			"gatehouse: GATEHOUSE_SERVER names a server, and the settings name a database: choose one with --server, or with --data-dir or --database-url\n"}))
		GinkgoT().Setenv("GATEHOUSE_SERVER", "")
		dir := newDatabase()
		GinkgoT().Setenv("GATEHOUSE_DATA_DIR", dir)
		Expect(run1("", "token", "list").stderr).To(Equal("using the database " + dir + "/gatehouse.db\n"))
	})

	It("says what to do when no server answers", func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		server := "http://" + l.Addr().String()
		Expect(l.Close()).To(Succeed())
		r := run1("", "token", "create", "ann", "--role", "admin", "--server", server)
		Expect([]any{r.code, r.stdout}).To(Equal([]any{1, ""}))
		Expect(r.stderr).To(And(HavePrefix("gatehouse: calling "+server+": "), HaveSuffix("; if no server runs, name the database: --data-dir or --database-url\n")))
	})

	It("refuses what makes no sense together", func() {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"list", "--server", "http://127.0.0.1:1", "--data-dir", "data"}, "--server is for a server and --data-dir for a database: give one of them"},
			{[]string{"list", "--token-file", "token", "--database-url", "sqlite:///x.db"}, "--token-file is for a server and --database-url for a database: give one of them"},
			{[]string{"create", "ci", "--role", "viewer", "--without-admin"},
				"--without-admin is for --data-dir and --database-url: a server knows whether it has --api-admin-token-file"},
		} {
			Expect(run1("", append([]string{"token"}, c.args...)...)).To(Equal(result{2, "", "gatehouse: " + c.want + "\n"}))
		}
	})
})
