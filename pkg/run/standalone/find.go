package standalone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/envoy"
)

// FindEnvoy returns the path of the Envoy to run: path unless it is empty, otherwise
// the one next to this program, otherwise the one in PATH.
func FindEnvoy(path string) (string, error) {
	if path != "" {
		return path, checkExecutable(path)
	}
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), "envoy")
			if checkExecutable(beside) == nil {
				return beside, nil
			}
		}
	}
	if found, err := exec.LookPath("envoy"); err == nil {
		return found, nil
	}
	return "", errors.New("no Envoy found beside the program or in PATH: run `make envoy` or give --envoy")
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no Envoy at %s: run `make envoy` or give another path with --envoy", path)
	case err != nil:
		return fmt.Errorf("looking for Envoy: %w", err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("the Envoy at %s is not an executable file: give another path with --envoy", path)
	}
	return nil
}

// versionTime is how long "envoy --version" may take.
const versionTime = 10 * time.Second

// checkVersion warns if the Envoy is not the version that Gatehouse is made for.
func checkVersion(ctx context.Context, children *Children, path string, log *slog.Logger) error {
	if err := checkExecutable(path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := children.Start(cmd)
	if err == nil {
		err = children.Finish(cmd)
	}
	if err != nil {
		return fmt.Errorf("%s does not run as an Envoy: %w: %s", path, err, strings.TrimSpace(out.String()))
	}
	if have := parseVersion(out.String()); have != envoy.Version {
		log.Warn("this envoy is not the version that gatehouse is tested with", "path", path, "version", have,
			"tested", envoy.Version)
	}
	return nil
}

// parseVersion reads "envoy  version: <commit>/1.39.3/Clean/RELEASE/BoringSSL".
func parseVersion(out string) string {
	if parts := strings.Split(out, "/"); len(parts) >= 4 {
		return parts[len(parts)-4]
	}
	return "unknown"
}
