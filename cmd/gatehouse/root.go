package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gatehouse",
		Short: "API gateway: Envoy, configured with a REST API",
		Long: `Gatehouse is an API gateway. Its control plane stores upstreams, services,
routes and proxies, which a REST API creates, and configures Envoy with them.`,
		Example: `  gatehouse standalone --demo          # gateway, backend and a first service
  gatehouse serve --database-url postgres://gatehouse@db/gatehouse
  gatehouse bootstrap --proxy gw --xds-addr 127.0.0.1:18000 > envoy.yaml`,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newServe(), newStandalone(), newBootstrap(), newEnvoy(), newReady())
	root.AddCommand(newToken(), newSecretKey(), newPKI(), newBackup(), newRestore(), newValidate(), newSchema(), newVersion())
	addClientCommands(root)
	root.AddCommand(newManual(root))
	withVersion(root)
	explainUsage(root)
	return root
}

func newServe() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:   config.Serve,
		Short: "Run the control plane: the REST API, and xDS for any number of Envoys",
		Long: `Runs the control plane. Envoys connect to --xds-addr under the name of a proxy
object; "gatehouse bootstrap" prints their configuration.`,
		Example: `  gatehouse serve
  gatehouse serve --database-url postgres://gatehouse:secret@db.example/gatehouse --log-format json
  GATEHOUSE_API_ADDR=127.0.0.1:0 gatehouse serve --config /etc/gatehouse.yaml
  gatehouse serve --debug-addr 127.0.0.1:6060   # then: go tool pprof http://127.0.0.1:6060/debug/pprof/heap`,
		RunE: func(cmd *cobra.Command, _ []string) error { return start(cmd, app.Serve) },
	})
}

func newStandalone() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:   config.Standalone,
		Short: "Run the control plane and one Envoy: a whole gateway in one process tree",
		Long: `Runs the control plane and an Envoy that it starts, watches and stops. The
Envoy receives the configuration of the proxy object that --proxy names.`,
		Example: `  gatehouse standalone --demo
  gatehouse standalone --tls-dir /etc/letsencrypt/live
  gatehouse standalone --listen-ip 0.0.0.0 --http-port 80 --https-port 443 --data-dir /var/lib/gatehouse`,
		RunE: func(cmd *cobra.Command, _ []string) error { return start(cmd, app.Standalone) },
	})
}

func start(cmd *cobra.Command, work func(context.Context, config.Config, app.Env) error) error {
	cfg, warnings, err := load(cmd)
	if err != nil {
		return err
	}
	sampleMemory(cfg.DebugAddr)
	level := &slog.LevelVar{}
	level.Set(levelOf(cfg))
	env, err := programEnv(cfg, level, cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	handleSignals(cmd, level, env.Log)
	limitMemory(cmd.Name(), env.Log)
	env.Loaded = collectRarely()
	for _, w := range warnings {
		env.Log.Warn("questionable setting", "reason", w)
	}
	if err := work(cmd.Context(), cfg, env); err != nil {
		if _, wrong := errors.AsType[*app.SettingError](err); wrong {
			return err
		}
		return &runError{err}
	}
	return nil
}

// withSettings gives cmd the flags of its settings.
func withSettings(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, s := range config.Settings(cmd.Name()) {
		f := flags.VarPF(&flagValue{text: s.Default, kind: s.Type, list: s.List}, s.Name, "", s.Usage)
		if s.Type == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	flags.VarP(&flagValue{kind: "file"}, config.FileFlag, "", "YAML file with settings; its keys are the names of the flags")
	cmd.Args = cobra.NoArgs
	cmd.Long += `

Every flag can also be given as an environment variable (--api-addr is
GATEHOUSE_API_ADDR) and as a key of the same name in the --config file. A flag
overrides the environment, and the environment overrides the file.`
	return cmd
}

func load(cmd *cobra.Command) (config.Config, []string, error) {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return config.Load(cmd.Name(), given, os.Environ(), os.ReadFile)
}

// flagValue takes any text: pkg/run/config says what is wrong with it.
type flagValue struct {
	text, kind  string
	list, given bool
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.kind }

func (v *flagValue) Set(s string) error {
	if v.list && v.given {
		s = v.text + "," + s
	}
	v.text, v.given = s, true
	return nil
}

// levelOf is the level that cfg, which Load has checked, asks for.
func levelOf(cfg config.Config) slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[cfg.LogLevel]
}

// logHandler writes the log that cfg asks for.
func logHandler(out io.Writer, cfg config.Config, level slog.Leveler) slog.Handler {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readableDuration}
	if cfg.LogFormat == "text" || cfg.LogFormat == "auto" && onTerminal(out) {
		return slog.NewTextHandler(out, opts)
	}
	return slog.NewJSONHandler(out, opts)
}

// readableDuration writes "218ms" where JSON would have nanoseconds.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
