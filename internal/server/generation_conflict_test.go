package server_test

import (
	"testing"

	"berth/internal/config"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestApp_AddsItsGenerationConflictsBeforeItStops stops a process that has refused a write.
func TestApp_AddsItsGenerationConflictsBeforeItStops(t *testing.T) {
	t.Parallel()
	const uuid = "0b3ee4ea-5a4b-4b64-8d38-0e0bd6a7a0c1"
	url := storetest.URL(t)
	t.Run("process", func(t *testing.T) {
		a := servertest.StartApp(t, config.API, "BERTH_DATABASE_URL="+url)
		if code := send(t, a, "POST", "/placement/resource_providers", `{"name": "a", "uuid": "`+uuid+`"}`); code != 201 {
			t.Fatalf("create a provider: got the status %d, want 201", code)
		}
		stale := `{"resource_provider_generation": 7, "traits": []}`
		if code := send(t, a, "PUT", "/placement/resource_providers/"+uuid+"/traits", stale, "OpenStack-API-Version", "placement 1.39"); code != 409 {
			t.Fatalf("replace the traits with an old generation: got the status %d, want 409", code)
		}
	})
	found, err := storetest.Open(t, url).Inventory.Conflicts(t.Context(), 10)
	if err != nil || len(found) != 1 || found[0].UUID != uuid || found[0].All != 1 {
		t.Errorf("conflicts after the end of the process: got %+v, error %v, want one of the provider", found, err)
	}
}
