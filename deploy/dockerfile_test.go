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

// instructions are the lines of a Dockerfile by their first word, continued lines joined.
func instructions(text string) map[string][]string {
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

func dockerfileProblems(f files) []string {
	in := instructions(f[dockerfile])
	found := slices.Concat(bases(f, in["FROM"]), builds(in["RUN"]), copies(f, in["COPY"]))
	if user := in["USER"]; len(user) != 1 || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user[0]) {
		found = append(found, fmt.Sprintf("the image must not run as root: USER %q", user))
	}
	listen, err := config.Load(nil)
	if err != nil || len(in["EXPOSE"]) != 1 || !strings.HasSuffix(listen.Listen, ":"+in["EXPOSE"][0]) {
		found = append(found, fmt.Sprintf("EXPOSE %q, but the default is to listen on %s", in["EXPOSE"], listen.Listen))
	}
	for _, line := range slices.Concat(in["HEALTHCHECK"], in["CMD"]) {
		var command []string
		if err := json.Unmarshal([]byte(line[strings.Index(line, "["):]), &command); err != nil {
			found = append(found, line+": "+err.Error())
			continue
		}
		if err := try(f, command); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// bases must be pinned, and the compiler's version one that go.mod allows.
func bases(f files, from []string) (found []string) {
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(f["go.mod"])[1]
	for _, base := range from {
		image, _, _ := strings.Cut(base, " ")
		name, tag, _ := strings.Cut(image, ":")
		if !pinned.MatchString(tag) {
			found = append(found, image+" is not pinned")
		}
		if name == "golang" && !strings.HasPrefix(tag, wants+".") {
			found = append(found, image+": go.mod wants "+wants)
		}
	}
	return found
}

// builds must name commands of ours.
func builds(run []string) (found []string) {
	for _, match := range regexp.MustCompile(`/out/\S+ (\./\w+)`).FindAllStringSubmatch(strings.Join(run, "\n"), -1) {
		if _, err := os.Stat(filepath.Join("..", match[1], "main.go")); err != nil {
			found = append(found, "there is no program "+match[1])
		}
	}
	return found
}

// copies must bring what our programs are made of, and nothing of it may be ignored.
func copies(f files, copied []string) (found []string) {
	folders, err := madeOf()
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

// madeOf lists the folders of the source tree that our programs are built from.
var madeOf = sync.OnceValues(func() ([]string, error) {
	cmd := exec.Command("go", "list", "-deps", "./worker", "./starter")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var folders []string
	for line := range strings.Lines(string(out)) {
		if ours, ok := strings.CutPrefix(strings.TrimSpace(line), "berth/"); ok {
			folder, _, _ := strings.Cut(ours, "/")
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), nil
})
