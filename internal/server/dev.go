package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"berth/internal/config"
	"berth/internal/devstack"
	"berth/internal/store/db"
)

// devRun is a development run: one process of berth with all roles, together with the servers that this
// process needs. A development run stores all its data in one folder.
type devRun struct {
	cfg      config.Config
	out      io.Writer
	started  time.Time
	postgres *devstack.Postgres
	temporal *devstack.Temporal
	odl      *devstack.Server
	nova     *devstack.Server
	neutron  *devstack.Server
	closers  []func() error // close the stubs of OpenDaylight, Nova and Neutron
	app      *App
}

// runDev runs `worker --dev` until ctx ends.
func runDev(ctx context.Context, cfg config.Config, environ []string, out io.Writer) error {
	d := &devRun{cfg: cfg, out: out, started: time.Now()}
	data, err := filepath.Abs(cfg.Dev.Data)
	if err != nil {
		return err
	}
	d.cfg.Dev.Data, d.cfg.Roles = data, devRoles(cfg)
	d.warnIgnoredSettings(environ)
	d.forgetStubs(environ)
	unlock, err := lockFolder(data)
	if err != nil {
		return err
	}
	defer unlock()
	log, err := os.OpenFile(filepath.Join(data, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	slog.SetDefault(newLogger(log, cfg))
	logStart(d.cfg)
	if err := d.awaitPorts(ctx); err != nil {
		return err
	}
	defer d.stop()
	if err := d.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return d.serve(ctx)
}

// devRoles returns the roles of a development run: all roles, but rpc only if BERTH_RABBITMQ_URL is set,
// because a development run does not start RabbitMQ.
func devRoles(cfg config.Config) []string {
	roles := []string{config.API, config.Relay, config.Temporal}
	if len(cfg.RabbitMQ) > 0 {
		roles = append(roles, config.RPC)
	}
	return roles
}

// printf prints a line that begins with the number of seconds since the start of the development run.
func (d *devRun) printf(format string, args ...any) {
	fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.started).Seconds(), fmt.Sprintf(format, args...))
}

// warnIgnoredSettings prints the settings that have no effect because a development run starts its own
// servers.
func (d *devRun) warnIgnoredSettings(environ []string) {
	for _, name := range []string{"BERTH_DATABASE_URL", "BERTH_DATABASE_POOLER_URL", "TEMPORAL_ADDRESS"} {
		if value, ok := environment(environ).LookupEnv(name); ok && value != "" {
			d.printf("%s is ignored: --dev starts its own server", name)
		}
	}
}

// awaitPorts returns an error if a port that a setting requests is in use. If an earlier development run was
// killed and left its address file, the child processes of that run may still listen on the ports, so
// awaitPorts retries for 20 seconds.
func (d *devRun) awaitPorts(ctx context.Context) error {
	timeout := time.Duration(0)
	if left, _ := config.ReadAddresses(d.cfg.Dev.Data); left != nil {
		timeout = 20 * time.Second
	}
	for begin := time.Now(); ; {
		err := d.checkPorts()
		if err == nil || time.Since(begin) >= timeout {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *devRun) checkPorts() error {
	l, err := Listen(d.cfg.Listen)
	if err != nil {
		return err
	}
	_ = l.Close()
	v := d.cfg.Dev
	var errs []error
	for _, p := range []struct {
		port    int
		setting string
	}{
		{v.DatabasePort, "BERTH_DEV_DATABASE_PORT"},
		{v.TemporalPort, "BERTH_DEV_TEMPORAL_PORT"},
		{v.UIPort, "BERTH_DEV_UI_PORT"},
		{v.ODLPort, "BERTH_DEV_ODL_PORT"},
	} {
		var taken devstack.PortTaken
		if _, err := devstack.Port(p.port); errors.As(err, &taken) {
			errs = append(errs, fmt.Errorf(
				"port %d (%s) is already in use; set the setting to another port, or to 0 for a free one",
				p.port,
				p.setting,
			))
		} else if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.setting, err))
		}
	}
	return errors.Join(errs...)
}

// start starts PostgreSQL, Temporal and the stubs, and opens the app.
func (d *devRun) start(ctx context.Context) error {
	v := d.cfg.Dev
	var err error
	d.printf("all data is in %s", v.Data)
	if d.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: filepath.Join(v.Data, "postgres"), Port: v.DatabasePort}); err != nil {
		return err
	}
	d.cfg.DatabaseURL = d.postgres.URL
	steps, err := db.Migrate(ctx, d.postgres.URL)
	if err != nil {
		return err
	}
	if _, err := db.SetAuthentication(ctx, d.postgres.URL, d.cfg.Auth); err != nil {
		return err
	}
	d.printf("PostgreSQL is running, migrations applied: %d", len(steps))
	cli, err := devstack.TemporalCLI(ctx, func(s string) { d.printf("%s", s) })
	if err != nil {
		return err
	}
	if d.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		CLI:    cli,
		Dir:    filepath.Join(v.Data, "temporal"),
		Port:   v.TemporalPort,
		UI:     true,
		UIPort: v.UIPort,
	}); err != nil {
		return err
	}
	d.printf("Temporal is running")
	if err := d.startStubs(); err != nil {
		return err
	}
	if d.cfg.TemporalUI == "" {
		d.cfg.TemporalUI = d.temporal.UI
	}
	// A configuration profile of the `temporal` command may name another Temporal server, so the development
	// run does not read profiles.
	environ := []string{"TEMPORAL_ADDRESS=" + d.temporal.Address, "TEMPORAL_CONFIG_FILE=" + os.DevNull}
	d.app, err = Open(ctx, d.cfg, environ)
	return err
}

// stop stops PostgreSQL, Temporal and the stubs. The caller must stop the App before it calls stop.
func (d *devRun) stop() {
	for _, s := range []*devstack.Server{d.neutron, d.nova, d.odl} {
		if s != nil {
			s.Stop()
		}
	}
	for _, c := range d.closers {
		if err := c(); err != nil {
			d.printf("%v", err)
		}
	}
	if d.temporal != nil {
		d.temporal.Stop()
	}
	if d.postgres != nil {
		d.postgres.Stop()
	}
}

// serve runs the App and the demo. serve returns when ctx ends, the App fails, or one of the servers that the
// development run has started ends by itself.
func (d *devRun) serve(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	served := make(chan error, 1)
	go func() {
		err := d.app.Run(ctx)
		served <- err
		fail(err)
	}()
	go d.watchServers(ctx, fail)
	var demoErr error
	if err := d.awaitReady(ctx); err == nil {
		if err := config.WriteAddresses(d.cfg.Dev.Data, d.addresses()); err != nil {
			fail(err)
		}
		d.printAddresses()
		demoErr = d.demo(ctx)
	}
	if ctx.Err() == nil {
		d.printf("running; Ctrl-C stops everything and keeps the data")
	}
	<-ctx.Done()
	d.printf("stopping")
	_ = config.RemoveAddresses(d.cfg.Dev.Data)
	appErr := <-served
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, appErr) {
		appErr = errors.Join(cause, appErr)
	}
	return errors.Join(appErr, demoErr)
}

// watchServers calls the function `fail` if PostgreSQL or Temporal ends by itself.
func (d *devRun) watchServers(ctx context.Context, fail func(error)) {
	select {
	case <-ctx.Done():
	case <-d.postgres.Ended():
		fail(fmt.Errorf(
			"the PostgreSQL server ended by itself; its log is %s",
			filepath.Join(d.cfg.Dev.Data, "postgres", "log"),
		))
	case <-d.temporal.Ended():
		fail(fmt.Errorf(
			"the Temporal server ended by itself; its log is %s",
			filepath.Join(d.cfg.Dev.Data, "temporal", "log"),
		))
	}
}

// awaitReady waits until every check of readiness passes, for at most a minute.
func (d *devRun) awaitReady(ctx context.Context) error {
	const timeout = time.Minute
	for begin := time.Now(); ; {
		found := d.app.checkReadiness(ctx)
		if len(found.failures()) == 0 {
			return nil
		}
		if time.Since(begin) > timeout {
			d.printf("not ready after %s: %v", timeout, found.failures())
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// addresses returns the environment variables with which programs in another terminal find the servers of the
// development run.
func (d *devRun) addresses() map[string]string {
	found := map[string]string{
		"BERTH_LISTEN":       d.app.Address(),
		"BERTH_URL":          d.app.URL(),
		"BERTH_DATA":         d.cfg.Dev.Data,
		"BERTH_DATABASE_URL": d.postgres.URL,
		"BERTH_ODL_URL":      d.cfg.ODL.URL,
		"BERTH_NOVA_URL":     d.cfg.Nova.URL,
		"BERTH_NEUTRON_URL":  d.cfg.Neutron.URL,
		"TEMPORAL_ADDRESS":   d.temporal.Address,
		"TEMPORAL_UI":        d.temporal.UI,
		stubsVariable:        strings.Join(d.stubURLs(), " "),
	}
	if d.app.operators != nil {
		found["BERTH_OPERATOR_LISTEN"] = d.app.operators.address()
	}
	return found
}

func (d *devRun) printAddresses() {
	api := d.app.URL()
	d.printf("ready")
	for _, line := range [][2]string{
		{"API", api + "   (/placement /networking /reservation /agent/v1 /journal/v1)"},
		{"health, metrics", api + "/readyz   " + d.app.OperatorURL() + "/metrics"},
		{"console", d.app.OperatorURL() + "/console   (token: admin)"},
		{"Temporal UI", d.temporal.UI},
		{"Temporal", d.temporal.Address},
		{d.service(d.odl, "OpenDaylight"), d.cfg.ODL.URL},
		{d.service(d.nova, "Nova"), d.cfg.Nova.URL},
		{d.service(d.neutron, "Neutron"), d.cfg.Neutron.URL + "   (floating IPs and networks of leases)"},
		{"log", filepath.Join(d.cfg.Dev.Data, "log")},
		{"settings for a shell", ". " + filepath.Join(d.cfg.Dev.Data, config.AddressFile)},
	} {
		fmt.Fprintf(d.out, "         %-22s %s\n", line[0], line[1])
	}
}

// demo runs `starter demo`, unless BERTH_DEMO is off; the program starter is in the folder of the program
// worker.
func (d *devRun) demo(ctx context.Context) error {
	if !d.cfg.Dev.Demo || ctx.Err() != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(self), "starter"), "demo")
	cmd.Env = os.Environ()
	for name, value := range d.addresses() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = d.out, d.out
	fmt.Fprintln(d.out)
	err = devstack.Run(ctx, cmd)
	fmt.Fprintln(d.out)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("starter demo: %w", err)
		d.printf("%v", err)
		return err
	}
	return nil
}
