package cache_test

import (
	"testing"

	"berth/internal/cache"
)

func TestCache_KeepsALimitedNumberOfValues(t *testing.T) {
	t.Parallel()
	c := cache.New[int, string](2)
	c.Put(1, "a")
	c.Put(2, "b")
	c.Put(2, "c") // replaces a value, so that the cache stays full and loses none
	for key, want := range map[int]string{1: "a", 2: "c"} {
		if got, ok := c.Get(key); !ok || got != want {
			t.Errorf("value of %d: got %q, %t; want %q", key, got, ok, want)
		}
	}

	c.Put(3, "d")
	_, first := c.Get(1)
	_, second := c.Get(2)
	if got, ok := c.Get(3); !ok || got != "d" || first == second || c.Len() != 2 {
		t.Errorf("after a third value: got %q, %t, and of the others %t and %t, %d values; want the new one and one other",
			got, ok, first, second, c.Len())
	}

	c.Delete(3)
	if got, ok := c.Get(3); ok || c.Len() != 1 {
		t.Errorf("after its deletion: got the value %q, %t, %d values; want none for the key, 1 value", got, ok, c.Len())
	}
}
