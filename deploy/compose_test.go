// Package deploy holds the tests of docker-compose.yml, the Dockerfile and the scripts of this folder. The
// tests check that berth's programs know every name and setting in these files, and run the services migrate,
// temporal-namespace, api and worker. They need no container engine, because they run these services as
// processes of this machine.
package deploy_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/config"
	"berth/internal/contract"
)

func TestDeployment_HasNoProblems(t *testing.T) {
	t.Parallel()
	for _, problem := range findProblems(readRepository(t)) {
		t.Error(problem)
	}
}

// TestDeployment_FindsEachMistake makes one mistake at a time in the deployment files and checks that
// findProblems reports the mistake.
func TestDeployment_FindsEachMistake(t *testing.T) {
	t.Parallel()
	correct := readRepository(t)
	for _, c := range mistakes {
		t.Run(c.old+" → "+c.mistake, func(t *testing.T) {
			t.Parallel()
			broken := maps.Clone(correct)
			broken[c.file] = strings.Replace(correct[c.file], c.old, c.mistake, 1)
			if broken[c.file] == correct[c.file] {
				t.Fatalf(
					"make a mistake in the file %s: want that the file contains the text %q, but it does not",
					c.file,
					c.old,
				)
			}
			found := findProblems(broken)
			if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.problem) }) {
				t.Errorf("findProblems: want a problem that contains %q, got %q", c.problem, found)
			}
		})
	}
}

// findProblems reports unknown names in the deployment files, and settings that are unsafe or inconsistent.
func findProblems(f files) []string {
	c, err := f.compose(map[string]string{
		"OS_AUTH_URL":    "http://keystone/v3",
		"BERTH_ODL_URL":  "http://odl",
		"BERTH_NOVA_URL": "http://nova",
	})
	if err != nil {
		return []string{err.Error()}
	}
	found := slices.Concat(
		checkVariables(f),
		checkImages(f, c),
		checkRoles(c),
		checkSearchAttributes(f),
		checkDockerfile(f),
	)
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		for _, problem := range slices.Concat(checkSettings(f, s), checkReachableSettings(s), checkCommands(f, s), checkPorts(f, s), checkMounts(f, c, s), checkDependencies(c, s),
			checkHardening(s), checkNetworks(c, name), checkTemporalTLS(s), checkSecrets(s), checkDatabaseTLS(f, s), checkBroker(f, s)) {
			found = append(found, name+": "+problem)
		}
		if !s.isOneShot() && len(s.Healthcheck.Test) == 0 {
			found = append(found, name+" has no health check")
		}
	}
	return found
}

// checkVariables compares the variables that the Compose file uses with the variables that env.example
// documents.
func checkVariables(f files) (found []string) {
	used, documented := f.usedVariables(), f.documentedVariables()
	for _, name := range used {
		if !slices.Contains(documented, name) {
			found = append(found, name+" is not documented in "+envExample)
		}
	}
	for _, name := range documented {
		if !slices.Contains(used, name) {
			found = append(found,
				name+" is documented in "+envExample+", but "+composeYAML+" does not use it")
		}
	}
	return found
}

// imageVariables lists the environment variables that third-party images read. The variables of the image
// postgres are those that its entrypoint script reads. The variables of Temporal's images are those that the
// server's configuration template, temporal-sql-tool, the temporal CLI and the UI's configuration read.
var imageVariables = map[string][]string{
	"postgres": {"POSTGRES_USER", "POSTGRES_PASSWORD_FILE"},
	"rabbitmq": {"RABBITMQ_NODENAME", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "ERL_EPMD_ADDRESS"},
	"temporalio/server": {
		"DB",
		"DB_PORT",
		"POSTGRES_SEEDS",
		"POSTGRES_USER",
		"POSTGRES_PWD",
		"NUM_HISTORY_SHARDS",
		"BIND_ON_IP",
		"TEMPORAL_BROADCAST_ADDRESS",
		"DYNAMIC_CONFIG_FILE_PATH",
		"LOG_LEVEL",
		"SQL_TLS_ENABLED",
		"SQL_HOST_VERIFICATION",
		"SQL_CA",
		"TEMPORAL_TLS_REQUIRE_CLIENT_AUTH",
		"TEMPORAL_TLS_FRONTEND_CERT",
		"TEMPORAL_TLS_FRONTEND_KEY",
		"TEMPORAL_TLS_FRONTEND_SERVER_NAME",
		"TEMPORAL_TLS_CLIENT1_CA_CERT",
		"TEMPORAL_TLS_CLIENT2_CA_CERT",
		"TEMPORAL_TLS_SERVER_CERT",
		"TEMPORAL_TLS_SERVER_KEY",
		"TEMPORAL_TLS_SERVER_CA_CERT",
		"TEMPORAL_TLS_INTERNODE_SERVER_NAME",
		"TEMPORAL_AUTH_AUTHORIZER",
		"TEMPORAL_AUTH_CLAIM_MAPPER",
		"TEMPORAL_JWT_KEY_SOURCE1",
		"TEMPORAL_JWT_KEY_SOURCE2",
		"TEMPORAL_SERVICES",
		"USE_INTERNAL_FRONTEND",
	},
	"temporalio/admin-tools": {"SQL_PLUGIN", "SQL_HOST", "SQL_PORT", "SQL_USER", "SQL_PASSWORD",
		"SQL_TLS", "SQL_TLS_CA_FILE", "SQL_TLS_DISABLE_HOST_VERIFICATION"},
	"temporalio/ui": {
		"TEMPORAL_ADDRESS",
		"TEMPORAL_DEFAULT_NAMESPACE",
		"TEMPORAL_DISABLE_WRITE_ACTIONS",
		"TEMPORAL_TLS_CA",
		"TEMPORAL_TLS_CERT",
		"TEMPORAL_TLS_KEY",
		"TEMPORAL_TLS_ENABLE_HOST_VERIFICATION",
		"TEMPORAL_TLS_SERVER_NAME",
		"TEMPORAL_AUTH_ENABLED",
		"TEMPORAL_AUTH_PROVIDER_URL",
		"TEMPORAL_AUTH_CLIENT_ID",
		"TEMPORAL_AUTH_CLIENT_SECRET",
		"TEMPORAL_AUTH_CALLBACK_URL",
		"TEMPORAL_AUTH_USE_ID_TOKEN_AS_BEARER",
		"TEMPORAL_AUTH_SCOPES",
	},
}

// pinnedTag matches the tag of an image if the tag names at least a minor version. The digest of the image
// may follow.
var pinnedTag = regexp.MustCompile(`^\d+\.\d+(\.\d+)?(-[a-z]+)?(@sha256:[0-9a-f]{64})?$`)

// checkImages checks that third-party images are known and pinned, and that Temporal's images are pinned to
// the version that the tests run.
func checkImages(f files, c compose) (found []string) {
	version := regexp.MustCompile(`go\.temporal\.io/server v(\S+)`).FindStringSubmatch(f["tools/temporal/go.mod"])[1]
	for _, s := range c.Services {
		name, tag, _ := strings.Cut(s.Image, ":")
		switch {
		case s.isBerth():
			continue
		case imageVariables[name] == nil:
			found = append(found, "imageVariables lacks the image "+name)
		case !pinnedTag.MatchString(tag):
			found = append(found, s.Image+" is not pinned")
		case name == "temporalio/server" || name == "temporalio/admin-tools":
			if number, _, _ := strings.Cut(tag, "@"); number != version {
				found = append(found, s.Image+": tools/temporal pins "+version)
			}
		}
	}
	return found
}

// checkSettings checks that the program or the scripts of a service read every variable in the service's
// environment.
func checkSettings(f files, s service) (found []string) {
	var read []string
	if s.isBerth() {
		read = slices.Concat(temporalVariables(s), config.Variables(), config.SecretFileVariables())
		// read by pgx if the URL does not name them, and by Go
		read = append(read, "PGSSLMODE", "PGSSLROOTCERT", "GOMEMLIMIT")
		if _, err := config.Load(s.environ()); err != nil {
			found = append(found, err.Error())
		}
	} else {
		name, _, _ := strings.Cut(s.Image, ":")
		read = slices.Concat(scriptVariables(f, s), imageVariables[name], wrappedVariables(s))
		if name == "temporalio/admin-tools" {
			// the temporal CLI loads its options with the same package as the SDK
			read = append(read, temporalVariables(s)...)
		}
		for _, name := range scriptVariables(f, s) {
			if s.Environment[name] == "" {
				found = append(found, "no setting for "+name)
			}
		}
	}
	for name := range s.Environment {
		if !slices.Contains(read, name) {
			found = append(found, "no program reads "+name)
		}
	}
	return found
}

// notForContainers contains the settings that no container can get, each with the reason.
var notForContainers = map[string]string{
	"BERTH_TEMPORAL_CLI": "it names a program that only development runs and tests start",
}

// settingsFolder is the folder, in the containers of berth, of the file that BERTH_CONFIG names.
const settingsFolder = "/etc/berth/settings"

// checkReachableSettings checks that an operator can give every setting to a service of berth: as a variable
// of the container, as a file with a secret, or in the file that BERTH_CONFIG names.
func checkReachableSettings(s service) (found []string) {
	if !s.isBerth() || s.isOneShot() {
		return nil
	}
	_, hasFile := s.Environment[config.File]
	if hasFile && hostPath(s, settingsFolder) == "" {
		found = append(found, "nothing is mounted at "+settingsFolder)
	}
	for _, name := range config.Variables() {
		_, variable := s.Environment[name]
		_, secret := s.Environment[name+"_FILE"]
		if !variable && !secret && notForContainers[name] == "" && !(hasFile && fileSettings()[name]) {
			found = append(found, "cannot get the setting "+name)
		}
	}
	return found
}

// fileSettings returns the names of the settings that the file of BERTH_CONFIG can contain.
var fileSettings = sync.OnceValue(func() map[string]bool {
	accepted := map[string]bool{}
	file := filepath.Join(programs, "settings.yaml")
	for _, name := range config.Variables() {
		key := strings.ToLower(strings.TrimPrefix(name, "BERTH_"))
		if err := os.WriteFile(file, []byte(key+":\n"), 0o600); err != nil {
			return nil
		}
		_, err := config.Load([]string{config.File + "=" + file})
		accepted[name] = err == nil || !strings.Contains(err.Error(), "unknown key")
	}
	return accepted
})

// recordingEnv replaces the process environment and records the names of the variables that a program looks
// up.
type recordingEnv struct {
	values map[string]string
	names  *[]string
}

func (r recordingEnv) LookupEnv(name string) (string, bool) {
	*r.names = append(*r.names, name)
	value, ok := r.values[name]
	return value, ok
}

func (r recordingEnv) Environ() []string { return nil }

// temporalVariables returns the environment variables that Temporal's SDK looks up.
func temporalVariables(s service) []string {
	var names []string
	_, _ = envconfig.LoadClientOptions(
		envconfig.LoadClientOptionsRequest{EnvLookup: recordingEnv{s.Environment, &names}},
	)
	return names
}

var shellVariable = regexp.MustCompile(`\$([A-Z][A-Z_]+)`)

// scriptVariables returns the environment variables that the mounted scripts of a service use.
func scriptVariables(f files, s service) (names []string) {
	for _, volume := range s.Volumes {
		source, _, _ := strings.Cut(volume, ":")
		for _, match := range shellVariable.FindAllStringSubmatch(f[strings.TrimPrefix(source, "./")], -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// checkRoles checks that every role has a service. checkRoles also checks that the same process has both the
// role relay and the role temporal, because workflows start eagerly only in such a process.
func checkRoles(c compose) (found []string) {
	assigned := map[string]bool{}
	for _, s := range c.Services {
		if len(s.Command) == 3 && s.Command[0] == "berth-worker" {
			roles := strings.Split(s.Command[2], ",")
			if slices.Contains(roles, config.Relay) != slices.Contains(roles, config.Temporal) {
				found = append(found, "relay and temporal are in different services")
			}
			for _, role := range roles {
				assigned[role] = true
			}
		}
	}
	for _, role := range []string{config.API, config.Relay, config.Temporal, config.RPC} {
		if !assigned[role] {
			found = append(found, "no service has the role "+role)
		}
	}
	return found
}

// checkCommands checks the command and the health check of a service of berth's image.
func checkCommands(f files, s service) (found []string) {
	if !s.isBerth() {
		return nil
	}
	all := [][]string{s.Command}
	if len(s.Healthcheck.Test) > 0 {
		all = append(all, s.Healthcheck.Test[1:])
	}
	for _, command := range all {
		if err := checkCommand(f, command); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// checkCommand checks that a program of berth accepts the arguments of a command. checkCommand runs the
// command without a database URL or with --help, so that the program only parses its arguments.
func checkCommand(f files, command []string) error {
	program := command[0]
	if !strings.Contains(f[dockerfile], "/out/"+program+" ") {
		return fmt.Errorf("want that the Dockerfile builds the program %s, but it does not", program)
	}
	check, _ := parsed.LoadOrStore(strings.Join(command, " "),
		sync.OnceValue(func() error { return parseArguments(command) }))
	return check.(func() error)()
}

// parsed contains the function parseArguments of each command, which runs once, because most mistakes do not
// change the commands.
var parsed sync.Map

func parseArguments(command []string) error {
	cmd := exec.Command(filepath.Join(programs, command[0]), command[1:]...)
	want := "BERTH_DATABASE_URL is not set"
	if command[0] == "starter" {
		cmd.Args = append(cmd.Args, "--help")
		want = "  starter " + command[1] + " "
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if !strings.Contains(string(out), want) {
		return fmt.Errorf("%s: %s", strings.Join(command, " "), out)
	}
	return nil
}

// checkSearchAttributes compares the search attributes that temporal-namespace.sh creates with the search
// attributes in package contract.
func checkSearchAttributes(f files) []string {
	var want, got []string
	for _, a := range contract.SearchAttributes {
		want = append(want, a.Name+" "+a.Type)
	}
	for _, match := range regexp.MustCompile(`--name (\w+) --type (\w+)`).FindAllStringSubmatch(f["deploy/temporal-namespace.sh"], -1) {
		got = append(got, match[1]+" "+match[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return []string{
			fmt.Sprintf("search attributes: want %q, temporal-namespace.sh creates %q", want, got),
		}
	}
	return nil
}
