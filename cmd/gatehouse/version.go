package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/envoy"
)

// version and commit are set by the linker, see the Makefile.
var version, commit string //nolint:gochecknoglobals // -ldflags -X needs variables

type build struct{ version, commit string }

// buildInfo falls back to what the Go tool records, for "go install".
func buildInfo() build {
	b := build{version, commit}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.commit == "" {
			b.commit = s.Value
		}
	}
	if b.commit == "" {
		b.commit = "unknown"
	}
	return b
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the program and of its Envoy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versions())
			return err
		},
	}
}

// withVersion gives root the flag --version, which says what newVersion does.
func withVersion(root *cobra.Command) {
	root.Version = versions()
	root.Flags().Bool("version", false, "print the versions of the program and of its Envoy")
	root.SetVersionTemplate("{{.Version}}")
}

func versions() string {
	b := buildInfo()
	return fmt.Sprintf("gatehouse %s\ncommit %s\n%s %s/%s\nmade for Envoy %s\n",
		b.version, b.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, envoy.Version)
}
