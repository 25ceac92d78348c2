package internal

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readmeLines is the maximum length of README.md.
const readmeLines = 220

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	pathLike   = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)*/?$`)
	fileLike   = regexp.MustCompile(`^[\w-]+(\.[\w-]+)*\.(go|md|sql|sh|yml|yaml|json|txt)$`)
	metricName = regexp.MustCompile(`^berth_[a-z_]+$`)
	testName   = regexp.MustCompile(`^Test[A-Z]\w*$`)
	anchorDrop = regexp.MustCompile(`[^\w -]`)
)

// TestDocs_PathsExist checks every path in backticks in the documentation. If a path in backticks begins with
// a folder of the repository, the path must exist. If a path in backticks is a file name without a folder,
// some folder of the repository must contain a file with this name.
func TestDocs_PathsExist(t *testing.T) {
	t.Parallel()
	names := fileNames(t)
	for _, page := range pages(t) {
		for _, span := range codeSpan.FindAllStringSubmatch(prose(t, page), -1) {
			name := span[1]
			first, _, nested := strings.Cut(name, "/")
			switch {
			case !pathLike.MatchString(name) || madeByRuns[name]:
			case nested && exists(filepath.Join("..", first)):
				if found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(name))); err != nil ||
					len(found) == 0 {
					t.Errorf("page %s: the path `%s` does not exist, want only existing paths", page, name)
				}
			case !nested && fileLike.MatchString(name) && !names[name]:
				t.Errorf(
					"page %s: no folder of the repository has the file `%s`, want only names of existing files",
					page,
					name,
				)
			}
		}
	}
}

// secretOutput matches a command that writes a file with secrets or with the data of all projects.
var secretOutput = regexp.MustCompile(`pg_dump |openssl genpkey |starter agent (key|token) create .*>`)

// TestDocs_FilesWithSecretsAreOnlyForTheirOwner checks the commands in the documentation that write secrets:
// the same line, or an earlier line of the same block, sets the umask.
func TestDocs_FilesWithSecretsAreOnlyForTheirOwner(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range pages(t) {
		for _, block := range codeBlock.FindAllString(text(t, page), -1) {
			private := false
			for line := range strings.Lines(block) {
				private = private || strings.TrimSpace(line) == "umask 077"
				if secretOutput.MatchString(line) {
					found++
					if !private && !strings.Contains(line, "(umask 077; ") {
						t.Errorf("page %s: the command %q writes secrets, want umask 077 before it", page, line)
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("commands that write secrets: got %d, want the 5 that the documentation has", found)
	}
}

// passwordArgument matches a command with a password or a token in its arguments.
var passwordArgument = regexp.MustCompile(`rabbitmqctl (add_user|change_password|authenticate_user) +\S+ +\S` +
	`|--(database-url|codec-auth|token)[ =]|(psql|pg_dump|pg_restore).*BERTH_DATABASE_URL`)

// TestDocs_NoPasswordIsAnArgument checks that commands read passwords and tokens from their standard input,
// from variables or from files: each user of a machine can see the arguments of all its programs.
func TestDocs_NoPasswordIsAnArgument(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range pages(t) {
		for _, block := range codeBlock.FindAllString(text(t, page), -1) {
			found += strings.Count(block, "rabbitmqctl add_user ")
			if command := passwordArgument.FindString(block); command != "" {
				t.Errorf("page %s: the command %q has a password in its arguments", page, command)
			}
		}
	}
	if found == 0 {
		t.Error("commands that create a user of RabbitMQ: got none, want those of docs/agents.md")
	}
}

// madeByRuns lists files that the documentation names and that only commands create, so that they are not in
// the repository.
var madeByRuns = map[string]bool{
	"bin/temporal":  true,
	"bin/bench":     true,
	"bin/docs":      true,
	"results.json":  true,
	"bin/peer":      true,
	"bin/sbom.json": true,
}

// TestDocs_LinksResolve checks that every relative link names an existing file, and that every anchor of a
// link names a heading of the link's file.
func TestDocs_LinksResolve(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(prose(t, page), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if !exists(filepath.Join("..", file)) {
				t.Errorf(
					"page %s: the target of the link %s does not exist, want only links to existing files",
					page,
					found[1],
				)
				continue
			}
			if anchor != "" && !anchors(prose(t, file))[anchor] {
				t.Errorf(
					"page %s: the anchor of the link %s is no heading of %s, want an existing heading",
					page, found[1], file,
				)
			}
		}
	}
}

// sitePage matches a page in the navigation of the site, and referencePage a page that only the site has.
var (
	sitePage      = regexp.MustCompile(`(?m)^ *- ([\w/-]+\.md)$`)
	referencePage = regexp.MustCompile(`^docs/reference/`)
)

// TestDocs_SiteNamesEveryPage checks that the navigation of the site names every Markdown file once, without
// building the site.
func TestDocs_SiteNamesEveryPage(t *testing.T) {
	t.Parallel()
	var named []string
	for _, found := range sitePage.FindAllStringSubmatch(text(t, "tools/docs/mkdocs.yml"), -1) {
		if !referencePage.MatchString(found[1]) {
			named = append(named, found[1])
		}
	}
	slices.Sort(named)
	existing := slices.Sorted(slices.Values(pages(t)))
	if d := cmp.Diff(existing, named); d != "" {
		t.Errorf("pages in the navigation of tools/docs/mkdocs.yml (-existing +named):\n%s", d)
	}
}

// TestDocs_NamesExistInCode checks that every metric and every test that a page names is in the code.
func TestDocs_NamesExistInCode(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	walk(t, func(name string) {
		if strings.HasSuffix(name, ".go") {
			code.WriteString(text(t, name))
		}
	})
	for _, page := range pages(t) {
		for _, span := range codeSpan.FindAllStringSubmatch(prose(t, page), -1) {
			name := span[1]
			switch {
			case metricName.MatchString(name) && !strings.Contains(code.String(), `"`+name+`"`):
				t.Errorf("page %s: the metric `%s` does not exist, want only existing metrics", page, name)
			case testName.MatchString(name) && !strings.Contains(code.String(), "func "+name+"("):
				t.Errorf("page %s: the test `%s` does not exist, want only existing tests", page, name)
			}
		}
	}
}

// TestDocs_ArchitectureNamesEveryPackage checks that docs/architecture.md names every package, not only in
// the generated tables.
func TestDocs_ArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	before, _, _ := strings.Cut(prose(t, "docs/architecture.md"), tablesBegin)
	for name := range packages(t) {
		if !strings.Contains(before, "`"+name+"`") {
			t.Errorf("docs/architecture.md does not name the package `%s`, want every package named", name)
		}
	}
}

func TestDocs_ReadmeIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(text(t, "README.md"), "\n"); n > readmeLines {
		t.Errorf("length of README.md: got %d lines, want at most %d; move text to docs", n, readmeLines)
	}
}

// glossaryWords is the maximum number of words that the glossary of README.md explains.
const glossaryWords = 8

// TestDocs_GlossaryOfReadmeIsAPartOfTheGlossary checks that README.md explains only a few words, and explains
// them as docs/glossary.md does.
func TestDocs_GlossaryOfReadmeIsAPartOfTheGlossary(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(text(t, "README.md"), "\n## Glossary\n")
	section, _, _ = strings.Cut(section, "\n## ")
	glossary := strings.Split(text(t, "docs/glossary.md"), "\n")
	words := 0
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Word |") {
			continue
		}
		words++
		if !slices.Contains(glossary, line) {
			t.Errorf("docs/glossary.md does not have the line %q of README.md, want it on both pages", line)
		}
	}
	if words == 0 || words > glossaryWords {
		t.Errorf(
			"words in the glossary of README.md: got %d, want 1 to %d; the others belong into docs/glossary.md",
			words,
			glossaryWords,
		)
	}
}

// pages lists every Markdown file of the repository, as a path relative to the root of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	walk(t, func(name string) {
		if strings.HasSuffix(name, ".md") {
			all = append(all, name)
		}
	})
	if len(all) < 10 {
		t.Fatalf("list the Markdown files: got %d, want at least 10", len(all))
	}
	return all
}

// fileNames is the set of base names of all files of the repository.
func fileNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	walk(t, func(name string) { names[path.Base(name)] = true })
	return names
}

// walk calls f with the name of every file of the repository. walk skips hidden folders and the folder bin.
func walk(t *testing.T, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !d.IsDir() {
			f(strings.TrimPrefix(filepath.ToSlash(name), "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// prose returns the text of a Markdown page without the code blocks.
func prose(t *testing.T, page string) string {
	t.Helper()
	return codeBlock.ReplaceAllString(text(t, page), "")
}

func text(t *testing.T, page string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// anchors returns the anchors of a Markdown page: each heading in lower case, without punctuation, and with a
// hyphen for each blank.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		plain := anchorDrop.ReplaceAllString(strings.ToLower(h[1]), "")
		all[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return all
}

// TestDocs_ThreatModelNamesATestForEachRule checks that each line of the table of rules in docs/security.md
// names a test. TestDocs_NamesExistInCode checks that the named tests exist.
func TestDocs_ThreatModelNamesATestForEachRule(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(text(t, "docs/security.md"), "## Who may do what at which interface\n")
	table, _, _ = strings.Cut(table, "\n## ")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) < 20 {
		t.Fatalf("table of rules in docs/security.md: got %d lines, want at least 20", len(lines))
	}
	for _, line := range lines[2:] { // after the head of the table
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if last := strings.Trim(cells[len(cells)-1], " `"); len(cells) != 3 || !testName.MatchString(last) {
			t.Errorf("docs/security.md: the line %q names no test in its last column, want one", line)
		}
	}
}
