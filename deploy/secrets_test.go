package deploy_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"berth/internal/config"
)

// mountedSecret is a file with a secret in the container of a service.
type mountedSecret struct{ Source, Target string }

// UnmarshalYAML parses the name of a secret, or a map with its name and its path in the container.
func (m *mountedSecret) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*m = mountedSecret{node.Value, "/run/secrets/" + node.Value}
		return nil
	}
	type plain mountedSecret
	return node.Decode((*plain)(m))
}

// testSecrets are the secrets of the tests. secrets.sh chooses the others.
var testSecrets = []string{"OS_PASSWORD=secret", "BERTH_ODL_PASSWORD=hunter2", "RABBITMQ_PASSWORD=letters1",
	"TEMPORAL_UI_CLIENT_SECRET=set"}

// createSecrets runs secrets.sh with testSecrets and more variables. The script has no terminal.
func createSecrets(folder string, more ...string) error {
	cmd := exec.Command("./secrets.sh")
	cmd.Env = slices.Concat(os.Environ(), testSecrets, []string{"BERTH_PRIVATE=" + folder}, more)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("secrets.sh: %w: %s", err, out)
	}
	return nil
}

// secretName matches the name of a variable whose value is a secret. The name of a variable with the path of
// a file ends differently.
var secretName = regexp.MustCompile(`(PASSWORD(_[A-Z]+)?|PASS|PWD|SECRET|TOKEN|API_KEY)$`)

// checkSecrets checks that the environment of a service contains no secret, and that a service can read the
// secrets that it needs, and no others.
func checkSecrets(s service) (found []string) {
	for name, value := range s.Environment {
		var password bool
		if u, err := url.Parse(value); err == nil && u.User != nil {
			_, password = u.User.Password()
		}
		isFile := strings.HasSuffix(name, "_FILE")
		secret := secretName.MatchString(name) ||
			slices.Contains(config.SecretFileVariables(), name+"_FILE") && name != "BERTH_RABBITMQ_URL"
		if !isFile && secret || password {
			found = append(found, "the secret "+name+" is in the environment")
		}
	}
	if len(s.EnvFile) > 0 {
		found = append(found, "has a file of variables, which puts secrets in the environment")
	}
	if len(s.Secrets) > 0 && len(s.GroupAdd) != 1 {
		found = append(found, "cannot read its secrets, because it is not in their group")
	}
	used := slices.Collect(maps.Values(s.Environment))
	for _, secret := range s.Secrets {
		if !slices.Contains(used, secret.Target) &&
			!strings.HasPrefix(secret.Target, "/etc/rabbitmq/conf.d/") {
			found = append(found, "does not need the secret "+secret.Source)
		}
	}
	return found
}

// wrappedVariables returns the variables that read-secrets.sh reads for a service.
func wrappedVariables(s service) (names []string) {
	words := slices.Concat(s.Entrypoint, s.Command)
	if len(words) == 0 || words[0] != "/deploy/read-secrets.sh" {
		return nil
	}
	for _, name := range words[1:max(1, slices.Index(words, "--"))] {
		names = append(names, name+"_FILE")
	}
	return names
}

// temporalCA is the certificate authority of PostgreSQL in the containers of Temporal.
const temporalCA = "/etc/temporal/private/postgres-ca.pem"

// requiredTLS are the settings with which the clients of PostgreSQL check its certificate and its name, by a
// variable that each client has.
var requiredTLS = map[string]map[string]string{
	"BERTH_DATABASE_URL_FILE": {
		"PGSSLMODE":     "verify-full",
		"PGSSLROOTCERT": "/etc/berth/private/postgres-ca.pem",
	},
	"POSTGRES_SEEDS": {
		"SQL_TLS_ENABLED":       "true",
		"SQL_HOST_VERIFICATION": "true",
		"SQL_CA":                temporalCA,
	},
	"SQL_HOST": {
		"SQL_TLS":                           "true",
		"SQL_TLS_DISABLE_HOST_VERIFICATION": "",
		"SQL_TLS_CA_FILE":                   temporalCA,
	},
}

// checkDatabaseTLS checks that PostgreSQL accepts only connections with TLS from other containers, and that
// its clients check its certificate and its name. TestPostgres_AcceptsOnlyTLSAndTheOwnRole checks the effect.
func checkDatabaseTLS(f files, s service) (found []string) {
	for client, settings := range requiredTLS {
		if s.Environment[client] == "" {
			continue
		}
		for name, want := range settings {
			if s.Environment[name] != want {
				found = append(found, fmt.Sprintf(
					"does not check the certificate of PostgreSQL: %s is %q, want %q",
					name, s.Environment[name], want,
				))
			}
		}
	}
	if strings.HasPrefix(s.Image, "postgres:") {
		if !slices.Contains(s.Command, "/deploy/postgres-server.sh") ||
			!strings.Contains(f["deploy/postgres-server.sh"], " -c ssl=on ") {
			found = append(found, "has no TLS")
		}
		for line := range strings.Lines(f[hbaConf]) {
			if kind, _, _ := strings.Cut(line, " "); !strings.HasPrefix(kind, "#") && kind != "local" &&
				kind != "hostssl" {
				found = append(found, "accepts connections without TLS: "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

// readSecrets returns the files that secrets.sh has created in a folder.
func readSecrets(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "secrets", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("list the secrets in %s: got %d files and error %v, want at least one file",
			folder, len(paths), err)
	}
	all := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = strings.TrimSuffix(string(raw), "\n")
	}
	return all
}

// TestSecrets_OnlyTheOwnerAndTheGroupOfTheContainersReadThem checks the files and their folder, also after a
// second run.
func TestSecrets_OnlyTheOwnerAndTheGroupOfTheContainersReadThem(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "private")
	group := fmt.Sprint(os.Getgid())
	for run := range 2 {
		if err := createSecrets(folder, "SECRETS_GROUP="+group); err != nil {
			t.Fatal(err)
		}
		for name := range readSecrets(t, folder) {
			path := filepath.Join(folder, "secrets", name)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			owner := info.Sys().(*syscall.Stat_t)
			if info.Mode() != 0o640 || fmt.Sprint(owner.Gid) != group || int(owner.Uid) != os.Getuid() {
				t.Errorf(
					"run %d: file %s: got mode %o, owner %d and group %d; want 640, this user and the group %s",
					run, name, info.Mode(), owner.Uid, owner.Gid, group,
				)
			}
			if err := os.Chmod(path, 0o644); err != nil { // the second run corrects it
				t.Fatal(err)
			}
		}
		for _, path := range []string{folder, filepath.Join(folder, "secrets")} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("folder %s: got mode %v and error %v, want 700", path, info.Mode().Perm(), err)
			}
		}
	}
}

// TestSecrets_FolderThatOthersCanOpenIsRefused: Docker Compose makes a missing folder with the mode 755 if it
// starts before the scripts have run.
func TestSecrets_FolderThatOthersCanOpenIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o755, 0o710, 0o701} {
		folder := filepath.Join(t.TempDir(), "private")
		if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, mode)); err != nil {
			t.Fatal(err)
		}
		_, noCertificates := createCertificates(folder)
		for script, err := range map[string]error{
			"secrets.sh":      createSecrets(folder),
			"certificates.sh": noCertificates,
		} {
			if err == nil || !strings.Contains(err.Error(), "chmod 700 "+folder) {
				t.Errorf("%s with a folder of mode %o: got %v, want an error that says chmod 700", script, mode, err)
			}
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("folder of mode %o: got the files %v and error %v, want none", mode, left, err)
		}
	}
}

func TestSecrets_SecondRunKeepsThem(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "private")
	if err := createSecrets(folder); err != nil {
		t.Fatal(err)
	}
	before := readSecrets(t, folder)
	if err := createSecrets(folder, "POSTGRES_PASSWORD=another", "OS_PASSWORD=another", "RABBITMQ_PASSWORD=another"); err != nil {
		t.Fatal(err)
	}
	if after := readSecrets(t, folder); !maps.Equal(before, after) {
		t.Errorf("run secrets.sh again: got %v, want the secrets of the first run: %v", after, before)
	}
	if before["postgres_password"] == before["database_password_berth"] ||
		len(before["postgres_password"]) < 32 {
		t.Errorf("passwords of PostgreSQL: got %q and %q, want two long ones that differ",
			before["postgres_password"], before["database_password_berth"])
	}
}

// TestSecrets_URLsContainEachPassword checks passwords with characters that have a meaning in a URL.
func TestSecrets_URLsContainEachPassword(t *testing.T) {
	t.Parallel()
	const password = `p@ss/w:rd?#%25 "ü'$x`
	folder := filepath.Join(t.TempDir(), "private")
	if err := createSecrets(folder, "DATABASE_PASSWORD_BERTH="+password); err != nil {
		t.Fatal(err)
	}
	all := readSecrets(t, folder)
	for name, want := range map[string]string{"database_url": password, "rabbitmq_url": "letters1"} {
		u, err := url.Parse(all[name])
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := u.User.Password(); got != want || u.User.Username() != "berth" {
			t.Errorf("%s: got the user %q with the password %q, want berth with %q",
				name, u.User.Username(), got, want)
		}
		if u.RawQuery != "" {
			t.Errorf("%s: got the parameters %q, want none, because PGSSLMODE would have no effect",
				name, u.RawQuery)
		}
	}
	if want := "default_user = berth\ndefault_pass = letters1"; all["rabbitmq_settings"] != want {
		t.Errorf("rabbitmq_settings: got %q, want %q", all["rabbitmq_settings"], want)
	}
}

func TestSecrets_IncompleteAndUnusableOnesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ variable, want string }{
		"no password of another service":              {"OS_PASSWORD=", "Password of berth's service user at Keystone: write it into"},
		"password that RabbitMQ's settings cut short": {"RABBITMQ_PASSWORD=a #b", "letters and digits only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := createSecrets(filepath.Join(t.TempDir(), "private"), c.variable)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run secrets.sh: got error %v, want one that contains %q", err, c.want)
			}
		})
	}
}

// TestReadSecrets_GivesThemOnlyToTheProcess checks the script that runs the programs that read secrets only
// from the environment.
func TestReadSecrets_GivesThemOnlyToTheProcess(t *testing.T) {
	t.Parallel()
	path, empty := filepath.Join(t.TempDir(), "password"), filepath.Join(t.TempDir(), "empty")
	for file, text := range map[string]string{path: "p@ss 'w$rd\n", empty: "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(file string) (string, error) {
		cmd := exec.Command("./read-secrets.sh", "POSTGRES_PWD", "--", "sh", "-c",
			`printf %s "$POSTGRES_PWD"`)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "POSTGRES_PWD_FILE=" + file}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if got, err := run(path); err != nil || got != "p@ss 'w$rd" {
		t.Errorf("run a program: got the password %q and error %v, want the content of the file", got, err)
	}
	for _, file := range []string{empty, path + ".gone"} {
		if out, err := run(file); err == nil {
			t.Errorf("run a program with the file %s: got no error and the output %q, want an error",
				file, out)
		}
	}
}
