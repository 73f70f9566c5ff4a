package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	_ "modernc.org/sqlite"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// run runs a command that calls no server, and waits for its end.
func run(env []string, args ...string) (code int, stdout, stderr string) {
	GinkgoHelper()
	p, err := testkit.SpawnGatehouse(env, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill)
	code, err = p.Wait(limit())
	Expect(err).NotTo(HaveOccurred())
	expectNoPanic(p.Stderr.String())
	return code, p.Stdout.String(), p.Stderr.String()
}

// program runs a program of PostgreSQL, as the hint of an error says.
func program(line string) {
	GinkgoHelper()
	_, hint, _ := strings.Cut(strings.TrimSuffix(line, ")"), "(run: ")
	words := strings.Fields(strings.ReplaceAll(hint, "'", ""))
	path, err := postgres.Program(words[0])
	Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(limit(), path, words[1:]...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", hint, out)
}

var _ = Describe("Backup and restore", func() {
	var dir, file, api, xds string
	var gw gateway
	var blue, green *testkit.Backend
	BeforeEach(func() {
		var err error
		dir, err = filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		file = filepath.Join(GinkgoT().TempDir(), "backup.db")
		api, xds = fmt.Sprintf("127.0.0.1:%d", freePort()), fmt.Sprintf("127.0.0.1:%d", freePort())
		blue, green = backend("blue"), backend("green")
	})
	serveOn := func(more ...string) *testkit.Gatehouse {
		GinkgoHelper()
		return start(nil, append([]string{"serve", "--data-dir", dir, "--api-addr", api, "--xds-addr", xds}, more...)...)
	}
	// configure routes an Envoy's requests to blue through upstream "shop".
	configure := func(g *testkit.Gatehouse) {
		GinkgoHelper()
		gw = gateway{g.API, freePort()}
		post(g.API, "/upstream", "Upstream_name=shop", "Upstream_ip="+blue.IP, "Upstream_port="+strconv.Itoa(blue.Port))
		addService(g.API, "shop", "*", "shop")
		addProxy(g.API, "gw", gw.port, "shop")
		envoyFor("gw", xds)
		gw.expect("shop.example", "/", "blue")
	}
	leadTo := func(g *testkit.Gatehouse, b *testkit.Backend) {
		GinkgoHelper()
		a := patch(g.API, "/upstream/shop?wait=applied", "Upstream_ip="+b.IP, "Upstream_port="+strconv.Itoa(b.Port))
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	}

	It("restore a gateway under an Envoy that loses no request, from a copy that was made under a storm of writes", func() {
		g := serveOn()
		configure(g)
		post(g.API, "/secret", "Secret_name=word", "Secret_type=generic", "Secret_value=s3cret")
		_, stopTraffic := gw.traffic("shop.example", 200)

		storm, end := context.WithCancel(context.Background())
		var group sync.WaitGroup
		DeferCleanup(func() { end(); group.Wait() })
		for writer := range 2 {
			group.Go(func() {
				defer GinkgoRecover()
				for i := 0; storm.Err() == nil; i++ {
					name := fmt.Sprintf("w%d-%d", writer, i)
					post(g.API, "/upstream", "Upstream_name="+name, "Upstream_ip=192.0.2.1", "Upstream_port=80")
				}
			})
		}
		for i := range 3 {
			code, stdout, stderr := run(nil, "backup", "--data-dir", dir, "--force", file)
			Expect([]any{code, stdout}).To(Equal([]any{0, ""}), stderr)
			Expect(stderr).To(MatchRegexp(`^using the database %s/gatehouse\.db beside process %d \(gatehouse serve\)
wrote revision \d+ \(schema \d+, [0-9.]+ [KM]iB\) to %s
its secrets need the key file %s/secret\.key, which is not in it: keep a copy of that file in another place
$`, dir, g.Pid(), file, dir), "backup %d", i)
		}
		info, err := os.Stat(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()).To(Equal(os.FileMode(0o600)))
		end()
		group.Wait()
		leadTo(g, green)
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))
		post(g.API, "/upstream", "Upstream_name=later", "Upstream_ip=192.0.2.1", "Upstream_port=80")

		Expect(refuses(1, nil, "restore", "--data-dir", dir, file)).To(Equal(fmt.Sprintf("gatehouse: the database %s/gatehouse.db is used by process %d (gatehouse serve), "+
			"and a restore replaces it (stop that process, run this again, then start it again; Envoys that it did not start go on with what they have meanwhile)", dir, g.Pid())))
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))

		Expect(g.Stop(limit())).To(BeZero())
		code, stdout, stderr := run(nil, "restore", "--data-dir", dir, file)
		Expect(code).To(BeZero(), stderr)
		Expect(stdout).To(MatchRegexp(`^restored revision \d+ of %s \(schema \d+, .*\) as %[2]s/gatehouse\.db
the key opens 1 sealed text
the database before is %[2]s/gatehouse\.db\.before-restore-\d{8}T\d{6}Z
$`, file, dir))
		g = serveOn()
		gw.expect("shop.example", "/", "blue")
		a, err := g.API.Get(limit(), "/upstream/later")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusNotFound))
		leadTo(g, green) // and it follows changes
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))
		stopTraffic()
	})

	It("move to another machine, through pipes, with the key", func() {
		g := serveOn()
		configure(g)
		a, err := g.API.Post(limit(), "/secret", "Secret_name=word", "Secret_type=generic", "Secret_value=s3cret")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		post(g.API, "/proxy/gw/token", "Token_name=edge")
		code, stdout, stderr := run(nil, "backup", "--data-dir", dir, "-")
		Expect(code).To(BeZero(), stderr)
		Expect(stderr).To(ContainSubstring(" to standard output\n"))
		Expect(os.WriteFile(file, []byte(stdout), 0o600)).To(Succeed())
		Expect(g.Stop(limit())).To(BeZero())
		key := filepath.Join(dir, "secret.key")

		dir = filepath.Join(GinkgoT().TempDir(), "new")
		Expect(refuses(1, nil, "restore", "--data-dir", dir, file)).To(Equal("gatehouse: the key file " + dir + "/secret.key does not exist " +
			"(restore it, or name the right one with --secret-key-file: nothing else opens what was sealed with it)"))
		Expect(dir).NotTo(BeADirectory())
		code, stdout, stderr = run(nil, "restore", "--data-dir", dir, "--secret-key-file", key, file)
		Expect(code).To(BeZero(), stderr)
		Expect(stdout).To(ContainSubstring("these tokens are valid, also if they were revoked after the backup: /proxy/gw/token/edge\n"))
		g = serveOn("--secret-key-file", key)
		gw.expect("shop.example", "/", "blue")
		Expect(read(g.API, "/secret/word")).To(ContainSubstring(`"word"`))
	})

	It("bring back a database that was lost, under an Envoy that was held meanwhile and loses no request", func() {
		g := serveOn()
		configure(g)
		_, stopTraffic := gw.traffic("shop.example", 200)
		code, _, stderr := run(nil, "backup", "--data-dir", dir, file)
		Expect(code).To(BeZero(), stderr)
		Expect(g.Kill()).To(Succeed())
		for _, name := range []string{"gatehouse.db", "gatehouse.db-wal", "gatehouse.db-shm"} {
			Expect(os.Remove(filepath.Join(dir, name))).To(Succeed())
		}
		held, err := testkit.StartGatehouse(limit(), nil, "serve", "--data-dir", dir, "--api-addr", api, "--xds-addr", xds)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(held.Kill)
		Eventually(held.Records).WithArguments("no envoy is answered, because the database seems to be lost").Should(HaveLen(1))
		Expect(held.Stop(limit())).To(BeZero())
		code, _, stderr = run(nil, "restore", "--data-dir", dir, file)
		Expect(code).To(BeZero(), stderr)
		g = serveOn() // which is ready
		Eventually(g.Records).WithArguments("envoy connected").Should(HaveLen(1))
		leadTo(g, green)
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))
		stopTraffic()
	})

	It("leave no file when they are interrupted, and remove what kill -9 left", func() {
		g := serveOn()
		addProxy(g.API, "gw", freePort())
		Expect(g.Stop(limit())).To(BeZero())
		// A program that holds the database makes the backup wait.
		db, err := sql.Open("sqlite", filepath.Join(dir, "gatehouse.db"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(db.Close)
		db.SetMaxOpenConns(1)
		for _, statement := range []string{"PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"} {
			_, err = db.ExecContext(limit(), statement)
			Expect(err).NotTo(HaveOccurred())
		}
		partials := func() []string {
			names, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".backup.db.*.partial"))
			Expect(err).NotTo(HaveOccurred())
			return names
		}
		var left []string
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
			p, err := testkit.SpawnGatehouse(nil, "backup", "--data-dir", dir, file)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(p.Kill)
			Eventually(partials).Should(And(HaveLen(1), Not(Equal(left))), "of this one, and of none before")
			left = partials()
			Expect(p.Signal(signal)).To(Succeed())
			code, err := p.Wait(limit())
			Expect(err).NotTo(HaveOccurred())
			if signal == syscall.SIGKILL {
				continue
			}
			Expect(code).To(Equal(1), p.Stderr.String())
			Expect(p.Stderr.String()).To(HaveSuffix("gatehouse: interrupted before it was done; run it again\n"))
			Expect(os.ReadDir(filepath.Dir(file))).To(BeEmpty())
		}
	})

	It("refuse a backup of a newer version, and tell what to do", func() {
		g := serveOn()
		addProxy(g.API, "gw", freePort())
		code, _, stderr := run(nil, "backup", "--data-dir", dir, file)
		Expect(code).To(BeZero(), stderr)
		Expect(g.Stop(limit())).To(BeZero())
		db, err := sql.Open("sqlite", file)
		Expect(err).NotTo(HaveOccurred())
		_, err = db.ExecContext(limit(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)")
		Expect(err).NotTo(HaveOccurred())
		Expect(db.Close()).To(Succeed())
		for _, args := range [][]string{{"--check"}, nil} {
			Expect(refuses(1, nil, append([]string{"restore", "--data-dir", dir, file}, args...)...)).To(MatchRegexp(
				`^gatehouse: %s has version 9000 of the schema, and this program knows versions up to \d+ \(a newer gatehouse has migrated it: run that version, or restore the backup from before the update, see docs/operations\.md\)$`, file))
		}
		g = serveOn()
		Expect(read(g.API, "/proxy/gw")).To(ContainSubstring(`"gw"`))
		Expect(g.Stop(limit())).To(BeZero())

		By("as does a start on a database of a newer version")
		Expect(os.Rename(file, filepath.Join(dir, "gatehouse.db"))).To(Succeed())
		Expect(refuses(1, nil, "serve", "--data-dir", dir, "--api-addr", api, "--xds-addr", xds)).To(HavePrefix("gatehouse: the database has version 9000 of the schema, and this program knows versions up to "))
	})

	It("leave a PostgreSQL database to the programs of PostgreSQL, with running control planes and an Envoy that loses no request", func() {
		url, _ := newDatabase()
		g := serveOn("--database-url", url)
		second := serve("--database-url", url, "--secret-key-file", filepath.Join(dir, "secret.key"))
		configure(g)
		_, stopTraffic := gw.traffic("shop.example", 200)

		dump := filepath.Join(GinkgoT().TempDir(), "gatehouse.dump")
		line := refuses(1, nil, "backup", "--database-url", url, dump)
		Expect(line).To(Equal("gatehouse: gatehouse backup is for SQLite; PostgreSQL has a program of its own (run: pg_dump --format=custom --no-owner --file=" + dump + " '" + url + "')"))
		program(line)
		leadTo(g, green)
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))

		line = refuses(1, nil, "restore", "--database-url", url, dump)
		Expect(line).To(Equal("gatehouse: gatehouse restore is for SQLite; PostgreSQL has a program of its own " +
			"(run: pg_restore --clean --if-exists --no-owner --single-transaction --dbname='" + url + "' " + dump + ")"))
		program(line)
		gw.expect("shop.example", "/", "blue")                  // after the next read of the database
		for _, plane := range []*testkit.Gatehouse{second, g} { // the Envoy is connected to one
			for _, to := range []*testkit.Backend{green, blue} {
				a := patch(plane.API, "/upstream/shop", "Upstream_ip="+to.IP, "Upstream_port="+strconv.Itoa(to.Port))
				Expect(a.Status).To(Equal(http.StatusOK), a.Body)
				gw.expect("shop.example", "/", to.Name)
			}
		}
		stopTraffic()
	})
})
