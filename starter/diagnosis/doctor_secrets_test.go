package diagnosis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test changes the current folder, so it cannot run in parallel with others.
func TestDoctor_WarnsAboutSecretsThatEveryUserCanRead(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if name == composeEnvironment {
			path = name
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings, token := write("berth.yaml", "log_level: info"), write("token", "s3cret")
	check := func(state, found string, environ ...string) {
		t.Helper()
		s, _ := newSession(t, time.Time{}, environ...)
		text, err := checkSecretFiles(t.Context(), s)
		row, _ := resultRow("secret files", text, err)
		if got, _ := row["found"].(string); row["state"] != state || !strings.Contains(got, found) ||
			strings.Contains(got, "s3cret") {
			t.Errorf("check files with secrets: got %v, want the state %s and the text %q", row, state, found)
		}
	}
	open := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}

	check("-", "no file with secrets")
	both := []string{"BERTH_CONFIG=" + settings, "BERTH_NOVA_TOKEN_FILE=" + token}
	check("ok", "2 files with secrets", both...)
	open(token, 0o640)
	check("ok", "2 files with secrets", both...)
	open(token, 0o644)
	check("WARN", "chmod 600 "+token, both...)
	open(token, 0o602)
	check("WARN", "chmod 600 "+token, both...)
	open(token, 0o644)
	open(settings, 0o604)
	check("WARN", "chmod 600 "+settings+" "+token, both...)
	write(composeEnvironment, "OS_PASSWORD=s3cret")
	check("ok", "1 files with secrets")
	open(composeEnvironment, 0o644)
	check("WARN", "chmod 600 .env")
}
