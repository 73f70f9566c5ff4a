package testkit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// CountedEnvoy is an Envoy with one worker, under Valgrind, which counts its instructions.
type CountedEnvoy struct {
	*Envoy
	bin, pipes string
}

// CountEnvoy is RunEnvoy for a CountedEnvoy.
func CountEnvoy(ctx context.Context, dir, bootstrap string) (*CountedEnvoy, error) {
	envoy, err := Binary("envoy")
	if err != nil {
		return nil, err
	}
	valgrind, err := Binary("valgrind/usr")
	if err != nil {
		return nil, err
	}
	c := &CountedEnvoy{bin: filepath.Join(valgrind, "bin"), pipes: filepath.Join(dir, "vgdb")}
	env := []string{"VALGRIND_LIB=" + filepath.Join(valgrind, "libexec/valgrind")}
	c.Envoy, err = runEnvoy(ctx, dir, bootstrap, env, []string{
		filepath.Join(c.bin, "valgrind.bin"), "-q", "--tool=callgrind", "--separate-threads=yes",
		"--callgrind-out-file=" + filepath.Join(dir, "callgrind"), "--vgdb-prefix=" + c.pipes,
		// Without counting, the start is twice as fast.
		"--instr-atstart=no",
		// Almost never, so that it answers only when all threads wait: the rest of a request would
		// count in the next reading.
		"--vgdb-poll=2000000000",
		envoy, "--concurrency", "1",
	})
	return c, err
}

// Instructions returns how many each thread has executed since Count, when none has anything to do.
func (c *CountedEnvoy) Instructions(ctx context.Context) (map[string]int, error) {
	said, err := c.ask(ctx, "status internal")
	if err != nil {
		return nil, err
	}
	threads := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^events-(\d+): (\d+)$`).FindAllStringSubmatch(said, -1) {
		if threads[m[1]], err = strconv.Atoi(m[2]); err != nil {
			return nil, err
		}
	}
	if len(threads) == 0 {
		return nil, errors.New("reading the instructions: Valgrind has none: " + said)
	}
	return threads, nil
}

// Count begins to count.
func (c *CountedEnvoy) Count(ctx context.Context) error {
	_, err := c.ask(ctx, "instrumentation on")
	return err
}

// ask gives a command to Valgrind while Envoy runs.
func (c *CountedEnvoy) ask(ctx context.Context, command string) (string, error) {
	args := []string{"--vgdb-prefix=" + c.pipes, "--max-invoke-ms=1", "--pid=" + strconv.Itoa(c.Pid()), command}
	p, err := startProcess(filepath.Join(c.bin, "vgdb"), nil, args...)
	if err != nil {
		return "", err
	}
	code, err := p.Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("asking Valgrind for %q: exit code %d: %s", command, code, strings.TrimSpace(p.Stderr.String()))
	}
	return p.Stdout.String(), err
}
