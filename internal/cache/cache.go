// Package cache contains a map that keeps a limited number of values. A value that was put may be absent
// later, so a caller must be able to get it elsewhere.
package cache

import "sync"

// Cache keeps a limited number of values by key. Its methods may be called concurrently.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex
	limit  int
	values map[K]V
}

// New returns a Cache that keeps at most `limit` values.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, values: map[K]V{}}
}

// Get returns the value of a key. The result ok is false if the cache has none.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok = c.values[key]
	return value, ok
}

// Put keeps the value of a key. If the cache is full, Put deletes the value of an arbitrary other key.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.values[key]; !ok && len(c.values) >= c.limit {
		for other := range c.values {
			delete(c.values, other)
			break
		}
	}
	c.values[key] = value
}

// Delete deletes the value of a key.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, key)
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.values)
}
