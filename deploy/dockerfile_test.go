package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"berth/internal/config"
)

// parseDockerfile returns the arguments of all instructions of a Dockerfile, by the instruction's name.
// parseDockerfile joins continued lines.
func parseDockerfile(text string) map[string][]string {
	text = strings.ReplaceAll(text, "\\\n", " ")
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word != "" && word != "#" {
			all[word] = append(all[word], rest)
		}
	}
	return all
}

// checkDockerfile checks the base images, build steps, user, port and commands of the Dockerfile.
func checkDockerfile(f files) []string {
	in := parseDockerfile(f[dockerfile])
	found := slices.Concat(checkBaseImages(f, in["FROM"]), checkBuilds(in["RUN"]), checkCopies(f, in["COPY"]))
	if user := in["USER"]; len(user) != 1 || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user[0]) {
		found = append(found, fmt.Sprintf("the image must not run as root: USER %q", user))
	}
	defaults, err := config.Load(nil)
	if err != nil || len(in["EXPOSE"]) != 1 || !strings.HasSuffix(defaults.Listen, ":"+in["EXPOSE"][0]) {
		found = append(
			found,
			fmt.Sprintf("EXPOSE %q, but the default of BERTH_LISTEN is %s", in["EXPOSE"], defaults.Listen),
		)
	}
	for _, line := range slices.Concat(in["HEALTHCHECK"], in["CMD"]) {
		var command []string
		if err := json.Unmarshal([]byte(line[strings.Index(line, "["):]), &command); err != nil {
			found = append(found, line+": "+err.Error())
			continue
		}
		if err := checkCommand(f, command); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// checkBaseImages checks that base images are pinned and that the compiler has the version of go.mod.
func checkBaseImages(f files, from []string) (found []string) {
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(f["go.mod"])[1]
	for _, base := range from {
		image, _, _ := strings.Cut(base, " ")
		name, tag, _ := strings.Cut(image, ":")
		if !pinnedTag.MatchString(tag) {
			found = append(found, image+" is not pinned")
		}
		if name == "golang" && !strings.HasPrefix(tag, goVersion+".") {
			found = append(found, image+": go.mod requires "+goVersion)
		}
	}
	return found
}

// checkBuilds checks that every program that the Dockerfile builds has a main.go.
func checkBuilds(run []string) (found []string) {
	for _, match := range regexp.MustCompile(`/out/\S+ (\./\w+)`).FindAllStringSubmatch(strings.Join(run, "\n"), -1) {
		if _, err := os.Stat(filepath.Join("..", match[1], "main.go")); err != nil {
			found = append(found, "no program "+match[1])
		}
	}
	return found
}

// checkCopies checks that the Dockerfile copies every source folder of the programs, and that .dockerignore
// excludes none of these source folders.
func checkCopies(f files, copied []string) (found []string) {
	folders, err := sourceFolders()
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range folders {
		if !slices.Contains(copied, name+" "+name) {
			found = append(found, name+" is not copied")
		}
		if !strings.Contains(f[".dockerignore"], "\n!"+name+"\n") {
			found = append(found, name+" is ignored")
		}
	}
	return found
}

// sourceFolders returns the top-level folders with the source of berth's programs.
var sourceFolders = sync.OnceValues(func() ([]string, error) {
	cmd := exec.Command("go", "list", "-deps", "./worker", "./starter")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the programs with go list: %w", err)
	}
	var folders []string
	for line := range strings.Lines(string(out)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "berth/"); ok {
			folder, _, _ := strings.Cut(path, "/")
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), nil
})
