package deploy_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The documentation says to move the keys of the authorities to a safe place. Who forgets to move them back
// must not get new authorities, which the services and agents with the former ones do not trust.
func TestCertificates_MovedAuthoritiesAreNotReplaced(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "private")
	if _, err := createCertificates(folder); err != nil {
		t.Fatal(err)
	}
	for _, moved := range []string{"", "temporal-servers.pem", "temporal-clients.pem", "rabbitmq.pem", "postgres.pem", "tokens.key"} {
		from := filepath.Join(folder, "authorities", moved)
		safe := filepath.Join(t.TempDir(), "safe")
		if err := os.Rename(from, safe); err != nil {
			t.Fatal(err)
		}
		before := hashes(t, folder)

		_, err := createCertificates(folder)

		if err == nil || !strings.Contains(err.Error(), "move the folder authorities back") ||
			!strings.Contains(err.Error(), "--new-authorities") {
			t.Errorf("create certificates without authorities/%s: got error %v, want one that says what to do", moved, err)
		}
		if d := cmp.Diff(before, hashes(t, folder)); d != "" {
			t.Errorf("files after the refusal without authorities/%s (-before +after):\n%s", moved, d)
		}
		if err := os.Rename(safe, from); err != nil {
			t.Fatal(err)
		}
	}
	before := hashes(t, folder)
	if err := os.RemoveAll(filepath.Join(folder, "authorities")); err != nil {
		t.Fatal(err)
	}
	if _, err := createCertificates(folder, "--new-authorities", "broker.example.com"); err != nil {
		t.Errorf("create certificates with --new-authorities: got error %v, want none", err)
	}
	for file, hash := range hashes(t, folder) {
		if hash != "folder" && before[file] == hash {
			t.Errorf("file %s after --new-authorities: got the same content, want new content", file)
		}
	}
	if _, err := createCertificates(folder); err != nil {
		t.Errorf("create certificates again: got error %v, want none", err)
	}
}

// hashes returns the hash of each file in a folder, and "folder" for each folder in it.
func hashes(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			all[path] = "folder"
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
