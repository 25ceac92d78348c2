package deploy_test

import (
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

	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
)

// bin holds our two programs under the names that they have in the image.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "berth-deploy-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(bin) }()
	built, err := devstack.Programs(context.Background(), filepath.Join(bin, "built"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, program := range map[string]string{"berth-worker": "worker", "starter": "starter"} {
		if err := os.Symlink(filepath.Join(built, program), filepath.Join(bin, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return temporaltest.Main(m, storetest.Main)
}

// files are the texts that describe a deployment, by their path in the repository.
type files map[string]string

const (
	composeYAML = "docker-compose.yml"
	dockerfile  = "Dockerfile"
	example     = "deploy/env.example"
)

func repository(t *testing.T) files {
	t.Helper()
	f := files{}
	names, err := filepath.Glob("*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = "deploy/" + name
	}
	for _, name := range append(names, composeYAML, dockerfile, ".dockerignore", example, "go.mod", "tools/server/go.mod") {
		raw, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		f[name] = string(raw)
	}
	return f
}

// compose is what of a Compose file is looked at.
type compose struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       string
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Restart     string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Grace       string                                `yaml:"stop_grace_period"`
	Healthcheck struct {
		Test    []string
		Disable bool
	}
}

// ours tells whether the service runs our image.
func (s service) ours() bool { return s.Build != "" }

// once tells whether the service ends by itself.
func (s service) once() bool { return strings.HasPrefix(s.Restart, "on-failure") || s.Restart == "no" }

func (s service) environ() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		all = append(all, name+"="+s.Environment[name])
	}
	return all
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_]+)(?::([-?])([^}]*))?\}`)

// references names the variables that the Compose file takes from its environment.
func (f files) references() []string {
	var names []string
	for _, match := range reference.FindAllStringSubmatch(f[composeYAML], -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// compose reads the Compose file as with that environment. What is missing there is its default, else "set".
func (f files) compose(environment map[string]string) (compose, error) {
	text := reference.ReplaceAllStringFunc(f[composeYAML], func(r string) string {
		match := reference.FindStringSubmatch(r)
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
	err := yaml.Unmarshal([]byte(text), &c)
	return c, err
}

// documented names the variables of the example of an environment.
func (f files) documented() []string {
	var names []string
	for line := range strings.Lines(f[example]) {
		if name, _, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
			names = append(names, name)
		}
	}
	return names
}
