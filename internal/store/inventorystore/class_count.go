package inventorystore

import (
	"time"

	"berth/internal/cache"
)

// Limits of classCounts. The number of providers with a class decides only in which order the search for
// candidates reads provider trees, so an old number does no harm.
const (
	maxCountedClasses = 1000
	maxCountAge       = time.Minute
)

// classCounts keeps how many providers have an inventory of a resource class, by name of the class, because
// counting them costs more than the rest of a search with a small limit.
type classCounts struct {
	*cache.Cache[string, classCount]
}

type classCount struct {
	providers int // at most maxRareCount
	at        time.Time
}

func newClassCounts() classCounts {
	return classCounts{cache.New[string, classCount](maxCountedClasses)}
}

// split returns the counts of the classes that are known, and the names of the other classes.
func (c classCounts) split(names []string, now time.Time) (known map[string]int, unknown []string) {
	known, unknown = map[string]int{}, []string{}
	for _, name := range names {
		if count, ok := c.Get(name); ok && now.Sub(count.at) < maxCountAge {
			known[name] = count.providers
		} else {
			unknown = append(unknown, name)
		}
	}
	return known, unknown
}

// addTo adds the known counts to the index of the classes, and keeps those of the other classes, which the
// index has.
func (c classCounts) addTo(index nameIndex, known map[string]int, unknown []string, now time.Time) {
	for name, providers := range known {
		index.counts[name] = providers
	}
	for _, name := range unknown {
		if _, exists := index.ids[name]; exists {
			c.Put(name, classCount{index.counts[name], now})
		}
	}
}
