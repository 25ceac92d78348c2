package console

import "context"

// PageSize is the maximum number of rows of a list on a page.
const PageSize = pageSize

// Watch is watch, with the content of the last rendering.
func (l *Live) Watch(
	key string,
	r func(context.Context) ([]byte, error),
) (changed <-chan struct{}, current func() []byte, leave func(), ok bool) {
	changed, now, leave, ok := l.watch(key, viewer{}, r)
	return changed, func() []byte { return now().content }, leave, ok
}

// Topics returns the number of pages that Live renders.
func (l *Live) Topics() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.topics)
}
