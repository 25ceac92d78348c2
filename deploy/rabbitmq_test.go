package deploy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startRabbitMQ runs the service rabbitmq of the Compose file as a process until the test ends, and returns
// its address. The broker has the environment of the Compose file and the settings of deploy/rabbitmq.conf,
// with other ports and folders.
func startRabbitMQ(t *testing.T, s service) (address string) {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	config := strings.NewReplacer("= 5671", "= "+port, "/etc/rabbitmq/private", hostPath(s, "/etc/rabbitmq/private/.")).
		Replace(readRepository(t)[rabbitConf])
	user, err := os.ReadFile(hostPath(s, "/etc/rabbitmq/conf.d/30-user.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"rabbitmq.conf": config + string(user), "plugins": "[].\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := hostEnvironment(s)
	maps.Copy(env, map[string]string{
		"PATH":                          "/usr/lib/rabbitmq/bin:" + os.Getenv("PATH"),
		"HOME":                          dir,
		"ERL_EPMD_PORT":                 freePort(t),
		"RABBITMQ_DIST_PORT":            freePort(t),
		"RABBITMQ_MNESIA_BASE":          filepath.Join(dir, "data"),
		"RABBITMQ_LOG_BASE":             filepath.Join(dir, "log"),
		"RABBITMQ_PID_FILE":             filepath.Join(dir, "pid"),
		"RABBITMQ_CONFIG_FILE":          filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE": filepath.Join(dir, "plugins"),
		"RABBITMQ_CONF_ENV_FILE":        "/dev/null",
		"RABBITMQ_ALLOW_INPUT":          "1",
		"RABBITMQ_SERVER_START_ARGS":    "-noinput",
	})
	// save CPU time
	env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] += " +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
	runServer(t, env, "epmd", "-port", env["ERL_EPMD_PORT"], "-address", "127.0.0.1")
	runServer(t, env, "/usr/lib/rabbitmq/bin/rabbitmq-server")

	authority, err := os.ReadFile(filepath.Join(private, "agents", "rabbitmq-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "rabbitmq"}
	trusted.RootCAs.AppendCertsFromPEM(authority)
	address = "127.0.0.1:" + port
	await(t, func() error {
		conn, err := tls.Dial("tcp", address, trusted)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return address
}

// runServer runs a program with an environment until the test ends.
func runServer(t *testing.T, env map[string]string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	startServer(t, cmd, env, syscall.SIGKILL)
}

// startServer starts a program, which gets a signal when the test ends.
func startServer(t *testing.T, cmd *exec.Cmd, env map[string]string, stop syscall.Signal) {
	t.Helper()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, stop)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("output of %s:\n%s", cmd.Path, &out)
		}
	})
}
