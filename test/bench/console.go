package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// console measures how long a page of the console takes to answer a key, in Chromium and as the page itself measures it,
// with many routes and with few.
func (l *lab) console(ctx context.Context) ([]section, error) {
	const perService, few = 10, 10
	many, err := l.typing(ctx, l.opts.consoleRoutes/perService, perService)
	if err != nil {
		return nil, err
	}
	less, err := l.typing(ctx, few, perService)
	if err != nil {
		return nil, err
	}
	s := section{
		Title: fmt.Sprintf("Typing into a search of the console, with %d routes", l.opts.consoleRoutes), Beside: fmt.Sprintf("%d routes", few*perService),
		Notes: []string{"From the key to the frame after the last change of the page. The first keys match the most."},
	}
	for _, page := range slices.Sorted(maps.Keys(many)) {
		median := beside(page+": median", "ms", quantile(many[page], 0.5), quantile(less[page], 0.5))
		if !strings.HasPrefix(page, "map") {
			median = median.below(100)
		}
		s.Rows = append(s.Rows,
			median,
			beside(page+": 90%", "ms", quantile(many[page], 0.9), quantile(less[page], 0.9)))
	}
	return []section{s}, nil
}

// typing returns the times of the keys, in ms, by page.
func (l *lab) typing(ctx context.Context, services, routes int) (times map[string][]float64, err error) {
	free, err := ports(2)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(l.dir, "console")
	if err != nil {
		return nil, err
	}
	base := "http://" + local(free[0]) + "/"
	p, err := l.run("console", l.opts.gatehouse, "serve", "--data-dir", dir, "--api-addr", local(free[0]), "--xds-addr", local(free[1]))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.stop(p)) }()
	if err := awaitReady(ctx, base+"ready"); err != nil {
		return nil, err
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w; make browser installs it", err)
	}
	node, err := filepath.Abs(l.opts.node)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(filepath.Dir(node), "..", "..")
	cmd := exec.CommandContext(ctx, node, filepath.Join(root, "test/console/flows/typing.mjs"))
	cmd.Env = append(os.Environ(), "BASE="+base, "CHROMIUM="+chromium, "NODE_MODULES="+filepath.Join(filepath.Dir(node), "node_modules"),
		"SERVICES="+strconv.Itoa(services), "ROUTES="+strconv.Itoa(routes), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	_, line, _ := bytes.Cut(out, []byte("\ntimes "))
	return times, json.Unmarshal(bytes.TrimSpace(line), &times)
}

// awaitReady waits until a program answers 200.
func awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close() // nothing is read
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s: %w", url, err)
		}
	}
}
