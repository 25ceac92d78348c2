package server_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"testing"

	"berth/internal/config"
	"berth/internal/server/servertest"
)

var openAPIFolder = flag.String("openapi", "",
	"folder into which TestOpenAPI_DocumentsOfAllAPIs writes the OpenAPI documents for the site")

// openAPIDocuments returns the OpenAPI documents that a process with the role `api` serves, by file name.
func openAPIDocuments(t *testing.T) map[string][]byte {
	t.Helper()
	a := servertest.StartApp(t, config.API)
	read := func(path string) []byte {
		t.Helper()
		answer, body := get(t, http.DefaultClient, a.URL()+path)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: got the status %d, want 200", path, answer.StatusCode)
		}
		return []byte(body)
	}
	var index struct {
		Documents []struct{ Href string }
	}
	if err := json.Unmarshal(read("/openapi/"), &index); err != nil {
		t.Fatalf("GET /openapi/: %v", err)
	}
	documents := map[string][]byte{}
	for _, d := range index.Documents {
		documents[path.Base(d.Href)] = read(d.Href)
	}
	return documents
}

// TestOpenAPI_DocumentsOfAllAPIs checks that each API has a document, and writes the documents if a folder is
// given.
func TestOpenAPI_DocumentsOfAllAPIs(t *testing.T) {
	t.Parallel()
	documents := openAPIDocuments(t)
	for _, name := range []string{
		"agent.json",
		"journal.json",
		"networking.json",
		"operator.json",
		"placement.json",
		"reservation.json",
	} {
		if !json.Valid(documents[name]) {
			t.Errorf("document %s: got %.100q, want JSON", name, documents[name])
		}
		if *openAPIFolder == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(*openAPIFolder, name), documents[name], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(documents) != 6 {
		t.Errorf("documents: got %d, want 6; add a new one to tools/docs/mkdocs.yml", len(documents))
	}
}
