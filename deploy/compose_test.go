// Package deploy holds the tests of docker-compose.yml, the Dockerfile and the scripts beside it. No container
// engine is needed: they are read, and what they name is looked for in our programs.
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
	"testing"

	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/config"
	"berth/internal/contract"
)

func TestDeploymentNamesOnlyWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, problem := range problems(repository(t)) {
		t.Error(problem)
	}
}

// TestMisspeltNamesAreFound breaks the deployment in one place at a time.
func TestMisspeltNamesAreFound(t *testing.T) {
	t.Parallel()
	whole := repository(t)
	for _, c := range []struct{ file, good, bad, say string }{
		{composeYAML, "  BERTH_ODL_URL:", "  BERTH_ODL_ULR:", "unknown variable BERTH_ODL_ULR"},
		{composeYAML, "  OS_PROJECT_NAME:", "  OS_PROJEKT_NAME:", "nobody reads OS_PROJEKT_NAME"},
		{composeYAML, "  TEMPORAL_ADDRESS: temporal:7233\n  TEMPORAL_NAMESPACE", "  TEMPORAL_HOST: temporal:7233\n  TEMPORAL_NAMESPACE", "nobody reads TEMPORAL_HOST"},
		{composeYAML, "  PGPASSWORD:", "  PGPASSWD:", "nobody reads PGPASSWD"},
		{composeYAML, "POSTGRES_PWD:", "POSTGRES_PASSWD:", "nobody reads POSTGRES_PASSWD"},
		{composeYAML, "SQL_HOST:", "SQL_SERVER:", "nobody reads SQL_SERVER"},
		{composeYAML, "TEMPORAL_DEFAULT_NAMESPACE:", "TEMPORAL_UI_NAMESPACE:", "nobody reads TEMPORAL_UI_NAMESPACE"},
		{composeYAML, "${OS_PASSWORD:", "${OS_PASWORD:", "OS_PASWORD is not explained"},
		{composeYAML, "-roles, api]", "-roles, apis]", `unknown role "apis"`},
		{composeYAML, "-roles, api]", "-role, api]", "flag provided but not defined: -role"},
		{composeYAML, `"relay,temporal"`, "relay", "no service has the role temporal"},
		{composeYAML, `"relay,temporal"`, "temporal", "no service has the role relay"},
		{composeYAML, "[starter, migrate]", "[starter, migrat]", "migrat"},
		{composeYAML, "[starter, migrate]", "[berth, migrate]", "no program berth"},
		{composeYAML, "probe, --ready]", "probe, --redy]", "--redy"},
		{composeYAML, "BERTH_AUTH: keystone", "BERTH_AUTH: noauth", "loopback only"},
		{composeYAML, "  BERTH_LISTEN: 0.0.0.0:8778", "  BERTH_LISTEN: 0.0.0.0:8779", "port 8778 is published, but BERTH_LISTEN"},
		{composeYAML, "0.0.0.0:8778}:8778", "0.0.0.0:8778}:8777", "port 8777 is published"},
		{composeYAML, `"127.0.0.1:7233:7233"`, `"7233:7233"`, "beyond loopback"},
		{composeYAML, "temporal-namespace: {condition: service_completed", "temporal: {condition: service_completed", "temporal does not end"},
		{composeYAML, "temporal: {condition: service_healthy}", "temporal-schema: {condition: service_healthy}", "temporal-schema has no health check"},
		{composeYAML, "postgres: {condition: service_healthy}", "postgresql: {condition: service_healthy}", "no service postgresql"},
		{composeYAML, "    healthcheck: *ready\n", "", "api has no health check"},
		{composeYAML, "restart: on-failure:5", "restart: always", "does not end"},
		{composeYAML, "restart: unless-stopped", "restart: unless-stoped", "restart: unless-stoped"},
		{composeYAML, "image: temporalio/server:1.32.1", "image: temporalio/server:latest", "not pinned"},
		{composeYAML, "image: temporalio/server:1.32.1", "image: temporalio/auto-setup:1.29.1", "no description of the image temporalio/auto-setup"},
		{composeYAML, "image: temporalio/admin-tools:1.32.1", "image: temporalio/admin-tools:1.31.0", "tools/server pins 1.32.1"},
		{composeYAML, "./deploy/temporal-schema.sh:", "./deploy/schema.sh:", "no file ./deploy/schema.sh"},
		{composeYAML, "[/deploy/temporal-schema.sh]", "[/deploy/temporal-schma.sh]", "nothing is mounted at /deploy/temporal-schma.sh"},
		{composeYAML, "DYNAMIC_CONFIG_FILE_PATH: /deploy/", "DYNAMIC_CONFIG_FILE_PATH: /etc/", "nothing is mounted at /etc/temporal-dynamicconfig.yaml"},
		{example, "API_ADDRESS=", "API_ADRESS=", "API_ADDRESS is not explained"},
		{example, "API_ADDRESS=", "API_ADDRESS=\nBERTH_GONE=", "BERTH_GONE is explained"},
		{dockerfile, "berth-worker ./worker", "berth-worker ./wroker", "./wroker"},
		{dockerfile, "golang:1.26.8", "golang:1.25.1", "go.mod wants"},
		{dockerfile, "golang:1.26.8-trixie", "golang:latest", "not pinned"},
		{dockerfile, "USER 65532:65532", "USER root", "root"},
		{dockerfile, "EXPOSE 8778", "EXPOSE 8777", "8777"},
		{dockerfile, `"starter", "probe"]`, `"starter", "prob"]`, "prob"},
		{dockerfile, "COPY workflows workflows\n", "", "workflows is not copied"},
		{".dockerignore", "!activities\n", "", "activities is ignored"},
		{"deploy/temporal-namespace.sh", "--name BerthHost", "--name BerthHots", "search attributes"},
		{"deploy/temporal-namespace.sh", "--type KeywordList", "--type Keyword", "search attributes"},
		{"deploy/postgres.sh", `"$DATABASE_PASSWORD_BERTH"`, `"$DATABASE_PASSWORD_BIRTH"`, "nobody sets DATABASE_PASSWORD_BIRTH"},
	} {
		t.Run(c.good+" → "+c.bad, func(t *testing.T) {
			t.Parallel()
			broken := maps.Clone(whole)
			broken[c.file] = strings.Replace(whole[c.file], c.good, c.bad, 1)
			if broken[c.file] == whole[c.file] {
				t.Fatalf("%s does not contain %q", c.file, c.good)
			}
			found := problems(broken)
			if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.say) }) {
				t.Errorf("want a problem with %q, got %q", c.say, found)
			}
		})
	}
}

// problems are the names in the deployment that stand for nothing, and what it must never do.
func problems(f files) []string {
	c, err := f.compose(map[string]string{"OS_AUTH_URL": "http://keystone/v3", "BERTH_ODL_URL": "http://odl", "BERTH_NOVA_URL": "http://nova"})
	if err != nil {
		return []string{err.Error()}
	}
	found := slices.Concat(variables(f), images(f, c), roles(c), attributes(f), dockerfileProblems(f))
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		for _, problem := range slices.Concat(settings(f, s), commands(f, s), ports(s), mounts(f, c, s), dependencies(c, s)) {
			found = append(found, name+": "+problem)
		}
		if !s.once() && len(s.Healthcheck.Test) == 0 {
			found = append(found, name+" has no health check")
		}
	}
	return found
}

// variables compares what the Compose file asks for with what the example explains.
func variables(f files) (found []string) {
	asked, explained := f.references(), f.documented()
	for _, name := range asked {
		if !slices.Contains(explained, name) {
			found = append(found, name+" is not explained in "+example)
		}
	}
	for _, name := range explained {
		if !slices.Contains(asked, name) {
			found = append(found, name+" is explained in "+example+", but "+composeYAML+" does not ask for it")
		}
	}
	return found
}

// known are the images of others with the variables that they read: postgres by its entrypoint, Temporal's by
// the server's configuration template, by temporal-sql-tool, by the temporal CLI and by the UI's configuration.
var known = map[string][]string{
	"postgres":               {"POSTGRES_USER", "POSTGRES_PASSWORD"},
	"temporalio/server":      {"DB", "DB_PORT", "POSTGRES_SEEDS", "POSTGRES_USER", "POSTGRES_PWD", "NUM_HISTORY_SHARDS", "BIND_ON_IP", "DYNAMIC_CONFIG_FILE_PATH", "LOG_LEVEL"},
	"temporalio/admin-tools": {"SQL_PLUGIN", "SQL_HOST", "SQL_PORT", "SQL_USER", "SQL_PASSWORD", "TEMPORAL_ADDRESS"},
	"temporalio/ui":          {"TEMPORAL_ADDRESS", "TEMPORAL_DEFAULT_NAMESPACE"},
}

var pinned = regexp.MustCompile(`^\d+\.\d+(\.\d+)?(-[a-z]+)?$`)

func images(f files, c compose) (found []string) {
	version := regexp.MustCompile(`go\.temporal\.io/server v(\S+)`).FindStringSubmatch(f["tools/server/go.mod"])[1]
	for _, s := range c.Services {
		name, tag, _ := strings.Cut(s.Image, ":")
		switch {
		case s.ours():
			continue
		case known[name] == nil:
			found = append(found, "no description of the image "+name)
		case !pinned.MatchString(tag):
			found = append(found, s.Image+" is not pinned")
		case name == "temporalio/server" || name == "temporalio/admin-tools":
			if tag != version {
				found = append(found, s.Image+": tools/server pins "+version)
			}
		}
	}
	return found
}

// settings looks for readers of every variable that a service is given.
func settings(f files, s service) (found []string) {
	var read []string
	if s.ours() {
		read = append(temporalVariables(s), config.Variables()...)
		read = append(read, "PGPASSWORD") // pgx, where the URL has no password
		if _, err := config.Load(s.environ()); err != nil {
			found = append(found, err.Error())
		}
	} else {
		name, _, _ := strings.Cut(s.Image, ":")
		read = append(scriptVariables(f, s), known[name]...)
		for _, name := range scriptVariables(f, s) {
			if s.Environment[name] == "" {
				found = append(found, "nobody sets "+name)
			}
		}
	}
	for name := range s.Environment {
		if !slices.Contains(read, name) {
			found = append(found, "nobody reads "+name)
		}
	}
	return found
}

// lookups is an environment that remembers what was looked for.
type lookups struct {
	values map[string]string
	names  *[]string
}

func (l lookups) LookupEnv(name string) (string, bool) {
	*l.names = append(*l.names, name)
	value, ok := l.values[name]
	return value, ok
}

func (l lookups) Environ() []string { return nil }

// temporalVariables are those that Temporal's SDK looks for.
func temporalVariables(s service) []string {
	var names []string
	_, _ = envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: lookups{s.Environment, &names}})
	return names
}

var shellVariable = regexp.MustCompile(`\$([A-Z][A-Z_]+)`)

// scriptVariables are those that the mounted scripts of a service use.
func scriptVariables(f files, s service) (names []string) {
	for _, volume := range s.Volumes {
		source, _, _ := strings.Cut(volume, ":")
		for _, match := range shellVariable.FindAllStringSubmatch(f[strings.TrimPrefix(source, "./")], -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// roles must all be played, and relay and temporal by one process: only there a workflow starts eagerly.
func roles(c compose) (found []string) {
	played := map[string]bool{}
	for _, s := range c.Services {
		if len(s.Command) == 3 && s.Command[0] == "berth-worker" {
			mine := strings.Split(s.Command[2], ",")
			if slices.Contains(mine, config.Relay) != slices.Contains(mine, config.Temporal) {
				found = append(found, "relay and temporal are in different services")
			}
			for _, role := range mine {
				played[role] = true
			}
		}
	}
	for _, role := range []string{config.API, config.Relay, config.Temporal} {
		if !played[role] {
			found = append(found, "no service has the role "+role)
		}
	}
	return found
}

// commands tries the command and the health check of our image.
func commands(f files, s service) (found []string) {
	if !s.ours() {
		return nil
	}
	all := [][]string{s.Command}
	if len(s.Healthcheck.Test) > 0 {
		all = append(all, s.Healthcheck.Test[1:])
	}
	for _, command := range all {
		if err := try(f, command); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// try runs a command only so far that its words, flags and roles are understood.
func try(f files, command []string) error {
	program := command[0]
	if !strings.Contains(f[dockerfile], "/out/"+program+" ") {
		return fmt.Errorf("the image has no program %s", program)
	}
	cmd := exec.Command(filepath.Join(bin, program), command[1:]...)
	understood := "BERTH_DATABASE_URL is not set"
	if program == "starter" {
		cmd.Args = append(cmd.Args, "--help")
		understood = "  starter " + command[1] + " "
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	if !strings.Contains(string(out), understood) {
		return fmt.Errorf("%s: %s", strings.Join(command, " "), out)
	}
	return nil
}

// attributes compares the search attributes that the script creates with those of the contract.
func attributes(f files) []string {
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
		return []string{fmt.Sprintf("search attributes: want %q, temporal-namespace.sh creates %q", want, got)}
	}
	return nil
}
