package deploy_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"berth/internal/config"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
)

// programs is the folder that contains berth's programs worker and starter, with the same file names as in
// the container image.
var programs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "berth-deploy-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(programs) }()
	built, err := devstack.Programs(context.Background(), filepath.Join(programs, "built"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, program := range map[string]string{"berth-worker": "worker", "starter": "starter"} {
		if err := os.Symlink(filepath.Join(built, program), filepath.Join(programs, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if private, err = createCertificates(filepath.Join(programs, "private")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := createSecrets(private); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return temporaltest.Main(m, storetest.Main)
}

// files maps the path of each deployment file in the repository to the content of the file.
type files map[string]string

const (
	composeYAML = "docker-compose.yml"
	dockerfile  = "Dockerfile"
	envExample  = "deploy/env.example"
	rabbitConf  = "deploy/rabbitmq.conf"
	hbaConf     = "deploy/pg_hba.conf"
)

// readRepository reads the deployment files from the repository.
func readRepository(t *testing.T) files {
	t.Helper()
	f := files{}
	names, err := filepath.Glob("*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = "deploy/" + name
	}
	names = append(
		names, composeYAML, dockerfile, ".dockerignore", envExample, rabbitConf, hbaConf, "go.mod",
		"tools/temporal/go.mod",
	)
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		f[name] = string(raw)
	}
	return f
}

// compose is the part of the Compose file that the tests check.
type compose struct {
	Services map[string]service
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
	Networks map[string]struct{ Internal bool }
}

type service struct {
	Image       string
	Build       string
	Entrypoint  []string
	Command     []string
	Environment map[string]string
	EnvFile     []string `yaml:"env_file"`
	Ports       []string
	Volumes     []string // with the secrets
	Secrets     []mountedSecret
	Restart     string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Grace       string                                `yaml:"stop_grace_period"`
	Healthcheck struct {
		Test    []string
		Disable bool
	}
	hardening `yaml:",inline"`
}

// isBerth reports whether the service runs berth's image.
func (s service) isBerth() bool { return s.Build != "" }

// isOneShot reports whether the process of the service exits after its work, such as a database migration.
func (s service) isOneShot() bool {
	return strings.HasPrefix(s.Restart, "on-failure") || s.Restart == "no"
}

// environ returns the environment of the service as a list of NAME=value. The files with secrets are files of
// this machine.
func (s service) environ() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		value := s.Environment[name]
		if slices.Contains(config.SecretFileVariables(), name) {
			value = cmp.Or(hostPath(s, value), value)
		}
		all = append(all, name+"="+value)
	}
	return all
}

// variablePattern matches ${NAME}, ${NAME:-default} and ${NAME:?error}.
var variablePattern = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)(?::([-?])([^}]*))?\}`)

// usedVariables returns the names of the environment variables that the Compose file uses.
func (f files) usedVariables() []string {
	var names []string
	for _, match := range variablePattern.FindAllStringSubmatch(f[composeYAML], -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// compose parses the Compose file with an environment. If the environment does not contain a variable of the
// Compose file, the variable gets the default in the Compose file, or the value "set" if there is no default.
func (f files) compose(environment map[string]string) (compose, error) {
	text := variablePattern.ReplaceAllStringFunc(f[composeYAML], func(r string) string {
		match := variablePattern.FindStringSubmatch(r)
		value := environment[match[1]]
		switch {
		case value != "":
			return value
		case match[2] == "-":
			return match[3]
		default:
			return "set"
		}
	})
	var c compose
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return c, err
	}
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			s.Volumes = append(slices.Clone(s.Volumes), c.Secrets[secret.Source].File+":"+secret.Target+":ro")
		}
		c.Services[name] = s
	}
	return c, nil
}

// documentedVariables returns the names of the variables in env.example.
func (f files) documentedVariables() []string {
	var names []string
	for line := range strings.Lines(f[envExample]) {
		if name, _, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
			names = append(names, name)
		}
	}
	return names
}
