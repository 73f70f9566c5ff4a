package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

// Env is what the program gets from its surroundings.
type Env struct {
	Stdout, Stderr io.Writer
	// AccessLog receives the access log of the Envoy that this program starts; nil
	// means Stdout.
	AccessLog io.Writer
	Log       *slog.Logger
	// LogFile is where the log goes, which the demo prints; empty means the screen.
	LogFile string
	// Loaded is called once the first configuration is published; nil means that
	// nothing is called.
	Loaded func()
	// Init reports whether the program is process 1 of a container, which inherits
	// orphans.
	Init bool
	// Program is how the program was called.
	Program, Version string
}

// SettingError says that the settings do not fit the database, so that the same start fails again.
type SettingError struct{ Err error }

func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SettingError) Unwrap() error { return e.Err }

// reapOrphans waits for orphans until stop is called, if there can be any. children are
// the processes that the program waits for itself.
func (e Env) reapOrphans(children *standalone.Children) (stop func()) {
	if !e.Init {
		return func() {}
	}
	return children.StartReaping(e.Log)
}

// Serve runs the control plane until ctx ends.
func Serve(ctx context.Context, cfg config.Config, env Env) (err error) {
	defer env.reapOrphans(&standalone.Children{})()
	if cfg.Mode != config.ModeKubernetes { // otherwise the database belongs to this process alone
		release, err := claim(ctx, cfg, "gatehouse serve")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	plane, err := openControlPlane(ctx, cfg, env, nil, nil, ownEnvoy{})
	if err != nil {
		return err
	}
	return plane.run(ctx)
}
