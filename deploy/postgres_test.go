package deploy_test

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"berth/internal/devstack"
	"berth/internal/store/storetest"
)

// postgresPrograms returns the folder of the PostgreSQL server of the tests.
func postgresPrograms(t *testing.T) (folder string) {
	t.Helper()
	c := storetest.Connect(t, storetest.URL(t))
	if err := c.QueryRow(t.Context(), `select setting from pg_config where name = 'BINDIR'`).Scan(&folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// unprivileged makes a command run as the user nobody if this process runs as root, because PostgreSQL
// refuses to run as root. The user gets the folder, too.
func unprivileged(t *testing.T, folder string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Dir = folder
	if os.Getuid() != 0 {
		return cmd
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	err = filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		return cmp.Or(err, os.Lchown(path, uid, gid))
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return cmd
}

// startPostgres runs the service postgres of the Compose file as a process until the test ends, and returns
// its address. The server has the command of the Compose file with another port and other folders.
// docker-entrypoint.sh of the image is replaced by a script that only runs the server; postgres.sh then
// creates the roles and the databases.
func startPostgres(t *testing.T, s service) (address string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "berth-deploy-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	bin, port, f := postgresPrograms(t), freePort(t), readRepository(t)
	entrypoint := "#!/bin/sh\nexec \"$@\" -D " + folder + "/data -p " + port + " -c listen_addresses=127.0.0.1,127.0.0.2" +
		" -c unix_socket_directories=" + folder + " -c fsync=off\n"
	paths := strings.NewReplacer(
		"/etc/postgresql/private",
		folder,
		"/tmp/key.pem",
		folder+"/copy.pem",
		"/deploy/",
		folder+"/",
	)
	content := map[string]string{
		"docker-entrypoint.sh": entrypoint,
		// the user of this process has another name
		"pg_hba.conf":        strings.Replace(f[hbaConf], " peer", " trust", 1),
		"postgres-server.sh": paths.Replace(f["deploy/postgres-server.sh"]),
	}
	for _, name := range []string{"certificate.pem", "key.pem"} {
		raw, err := os.ReadFile(hostPath(s, "/etc/postgresql/private/"+name))
		if err != nil {
			t.Fatal(err)
		}
		content[name] = string(raw)
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	create := exec.Command(filepath.Join(bin, "initdb"),
		"-D", folder+"/data", "-U", "postgres", "-A", "trust", "--no-sync")
	if out, err := unprivileged(t, folder, create).CombinedOutput(); err != nil {
		t.Fatalf("initdb: %s: %s", err, out)
	}
	env := hostEnvironment(s)
	maps.Copy(env, map[string]string{
		"PATH":   folder + ":" + bin + ":" + os.Getenv("PATH"),
		"PGHOST": folder,
		"PGPORT": port,
	})
	server := unprivileged(
		t,
		folder,
		exec.Command(filepath.Join(folder, strings.TrimPrefix(s.Command[0], "/deploy/")), s.Command[1:]...),
	)
	startServer(t, server, env, syscall.SIGQUIT)

	local := "host=" + folder + " port=" + port + " user=postgres dbname=postgres sslmode=disable"
	await(t, func() error { return dialPostgres(t, local) })
	roles := exec.Command("./postgres.sh")
	for name, value := range env {
		roles.Env = append(roles.Env, name+"="+value)
	}
	if out, err := roles.CombinedOutput(); err != nil {
		t.Fatalf("postgres.sh: %s: %s", err, out)
	}
	return "localhost:" + port
}

// dialPostgres connects to a database.
func dialPostgres(t *testing.T, settings string) error {
	t.Helper()
	c, err := pgx.Connect(t.Context(), settings)
	if err != nil {
		return err
	}
	return c.Close(context.Background())
}

// TestPostgres_AcceptsOnlyTLSAndTheOwnRole runs PostgreSQL with the command of the Compose file, and checks
// which clients it accepts.
func TestPostgres_AcceptsOnlyTLSAndTheOwnRole(t *testing.T) {
	t.Parallel()
	c, err := readRepository(t).compose(nil)
	if err != nil {
		t.Fatal(err)
	}
	address := startPostgres(t, c.Services["postgres"])
	_, port, _ := strings.Cut(address, ":")
	migrate := hostEnvironment(c.Services["migrate"])
	secrets := readSecrets(t, private)
	connect := func(role, password, database, host string, parameters url.Values) error {
		if parameters == nil {
			parameters = url.Values{
				"sslmode":     {migrate["PGSSLMODE"]},
				"sslrootcert": {migrate["PGSSLROOTCERT"]},
			}
		}
		login := url.UserPassword(role, secrets["database_password_"+password])
		u := url.URL{
			Scheme:   "postgres",
			User:     login,
			Host:     host,
			Path:     database,
			RawQuery: parameters.Encode(),
		}
		return dialPostgres(t, u.String())
	}

	for role, databases := range map[string][]string{"berth": {"berth"}, "temporal": {"temporal", "temporal_visibility"}} {
		for _, database := range databases {
			if err := connect(role, role, database, address, nil); err != nil {
				t.Errorf("connect the role %s to the database %s: got error %v, want none",
					role, database, err)
			}
		}
	}
	plain := url.Values{"sslmode": {"disable"}}
	healthy := exec.Command(
		filepath.Join(postgresPrograms(t), "pg_isready"),
		c.Services["postgres"].Healthcheck.Test[2:]...)
	healthy.Env = []string{"PGPORT=" + port}
	if out, err := healthy.CombinedOutput(); err != nil {
		t.Errorf("health check: got error %v and the output %s, want none", err, out)
	}
	foreign := url.Values{
		"sslmode":     {"verify-full"},
		"sslrootcert": {filepath.Join(private, "agents", "rabbitmq-ca.pem")},
	}
	// the certificate does not have this address
	alias := strings.Replace(address, "localhost", "127.0.0.2", 1)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"without TLS":                  {connect("berth", "berth", "berth", address, plain), "no pg_hba.conf entry"},
		"of another authority":         {connect("berth", "berth", "berth", address, foreign), "certificate signed by unknown authority"},
		"with another name":            {connect("berth", "berth", "berth", alias, nil), "certificate is valid for 127.0.0.1, not 127.0.0.2"},
		"with a wrong password":        {connect("berth", "temporal", "berth", address, nil), "password authentication failed"},
		"berth to temporal":            {connect("berth", "berth", "temporal", address, nil), "no pg_hba.conf entry"},
		"temporal to berth":            {connect("temporal", "temporal", "berth", address, nil), "no pg_hba.conf entry"},
		"superuser of another machine": {connect("postgres", "berth", "berth", address, nil), "no pg_hba.conf entry"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("connect %s: got error %v, want one that contains %q", name, c.err, c.want)
		}
	}
}

// TestPostgres_TemporalUsesItWithTLS updates the schemas of Temporal and starts its server with the
// environments of the Compose file. Only the addresses, and the programs of the images, are those of this
// machine.
func TestPostgres_TemporalUsesItWithTLS(t *testing.T) {
	t.Parallel()
	built, err := devstack.TemporalServer(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	c, err := readRepository(t).compose(nil)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(startPostgres(t, c.Services["postgres"]), ":")
	tools := t.TempDir()
	if err := os.Symlink(built.SQLTool, filepath.Join(tools, "temporal-sql-tool")); err != nil {
		t.Fatal(err)
	}
	schema := c.Services["temporal-schema"]
	env := hostEnvironment(schema)
	maps.Copy(env,
		map[string]string{"PATH": tools + ":" + os.Getenv("PATH"), "SQL_HOST": host, "SQL_PORT": port})
	var words []string
	for _, word := range schema.Command {
		words = append(words, cmp.Or(hostPath(schema, word), word))
	}
	for range 2 { // Compose runs it at every start
		cmd := exec.Command(words[0], words[1:]...)
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("temporal-schema: %s: %s", err, out)
		}
	}

	plugin := c.Services["temporal"].Environment["DB"]
	address, _ := startTemporalService(t,
		map[string]string{"DB": plugin, "POSTGRES_SEEDS": host, "DB_PORT": port})
	await(t, func() error { return dialAs(t, c.Services["worker"], address, nil) })
}
