package neutron_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// Many requests of the project red wait for a locked network of this project, without a time limit.
func TestWrites_OneProjectLeavesDatabaseConnectionsForOthers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	c := openOn(t, url+separator+"lock_timeout=0&statement_timeout=0", networkstore.Config{})
	red, blue := c.as("eve:red"), c.as("bob:blue")
	made := red.must(201, "POST", "/v2.0/networks", `{"network":{"name":"busy"}}`)
	id, _ := made["network"].(object)["id"].(string)
	own := blue.must(201, "POST", "/v2.0/networks", `{"network":{"name":"other"}}`)
	ownID, _ := own["network"].(object)["id"].(string)
	lock := storetest.Connect(t, url)
	if _, err := lock.Exec(t.Context(), `begin; select from network where id = '`+id+`' for update`); err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	for range 40 {
		flood.Go(func() { red.raw("PUT", "/v2.0/networks/"+id, `{"network":{"name":"busy"}}`) })
	}
	defer flood.Wait()
	defer func() { _, _ = lock.Exec(context.WithoutCancel(t.Context()), `rollback`) }()
	for until := time.Now().Add(time.Minute); c.store.DB.Pools()[0].Waiting == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the requests of the busy project do not wait for connections")
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 10 {
		r, err := http.NewRequestWithContext(ctx, "PUT", blue.url+"/v2.0/networks/"+ownID,
			strings.NewReader(`{"network":{"name":"other"}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", blue.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("rename a network while requests of another project wait for its lock: got error %v", err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != 200 {
			t.Fatalf("rename a network while requests of another project wait for its lock: got %d, want 200",
				answer.StatusCode)
		}
	}
}
