package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A user who can write into the current folder, such as /tmp, could otherwise let starter send the token of
// the caller to another server.
func TestReadSettings_AddressFileThatOthersCanChangeIsRefused(t *testing.T) {
	const address = "http://192.0.2.1:1"
	for name, c := range map[string]struct {
		folder, file os.FileMode
		link         bool // the folder is a link
		owner        int  // of the folder and the file; only root can change it
		used         bool
	}{
		"own":                     {folder: 0o700, file: 0o600, used: true},
		"own, readable":           {folder: 0o755, file: 0o644, used: true},
		"folder others can write": {folder: 0o777, file: 0o600},
		"folder the group writes": {folder: 0o770, file: 0o600},
		"file others can write":   {folder: 0o755, file: 0o602},
		"link to another folder":  {folder: 0o700, file: 0o600, link: true},
		"another user's":          {folder: 0o755, file: 0o644, owner: 65534},
	} {
		t.Run(name, func(t *testing.T) {
			if c.owner != 0 && os.Geteuid() != 0 {
				c.used = true // the files stay those of this user
			}
			t.Chdir(t.TempDir())
			folder, owner := ".berth", os.Geteuid()
			var failed error
			if c.link {
				folder = "elsewhere"
				failed = os.Symlink(folder, ".berth")
			}
			if owner == 0 {
				owner = c.owner
			}
			file := filepath.Join(folder, "env")
			if err := errors.Join(
				failed,
				os.Mkdir(folder, 0o700),
				os.WriteFile(file, []byte("export BERTH_URL='"+address+"'\n"), 0o600),
				os.Chmod(file, c.file),
				os.Chmod(folder, c.folder),
				os.Chown(file, owner, -1),
				os.Chown(folder, owner, -1),
			); err != nil {
				t.Fatal(err)
			}
			s, err := ReadSettings([]string{"BERTH_TOKEN=secret"})
			if (s.URL == address) != c.used || (err == nil) != c.used {
				t.Errorf("got the URL %s and error %v; want the address of the file: %t", s.URL, err, c.used)
			}
			if s, err = ReadSettings([]string{"BERTH_DATA=.berth"}); s.URL != address || err != nil {
				t.Errorf("with BERTH_DATA: got the URL %s and error %v, want the address of the file", s.URL, err)
			}
		})
	}
}
