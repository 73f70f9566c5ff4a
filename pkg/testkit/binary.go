package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Binary returns the path of a program in the module's bin directory, such as
// gatehouse or envoy. GATEHOUSE_TEST_PROGRAM is another gatehouse: "make soak" has one that
// looks for races.
func Binary(name string) (string, error) {
	if path := os.Getenv("GATEHOUSE_TEST_PROGRAM"); path != "" && name == "gatehouse" {
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", name, err)
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("looking for %s: %w; run `make build envoy redis ratelimit kubernetes providers valgrind prometheus`", name, err)
	}
	return path, nil
}

func moduleRoot() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root, nil
		}
		if root == filepath.Dir(root) {
			return "", errors.New("no go.mod above the working directory")
		}
		root = filepath.Dir(root)
	}
}
