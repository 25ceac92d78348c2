package inventorystore

import (
	"context"
	"sync"
	"time"
	"unique"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// traitVersion identifies the traits that a provider has: every change of traits increments the generation of
// the provider and sets the time of its change. The time is needed because a generation may come again, when
// a standby that lacks the newest transactions replaces the database.
type traitVersion struct {
	generation int64
	changedAt  *time.Time // nil: never changed
}

func (v traitVersion) equals(other traitVersion) bool {
	if v.changedAt == nil || other.changedAt == nil {
		return v == other
	}
	return v.generation == other.generation && v.changedAt.Equal(*other.changedAt)
}

// maxCachedTraits is the maximum number of providers in a traitCache: about 20 MB without the names.
const maxCachedTraits = 200_000

// traitCache keeps all traits of providers, because summaries of allocation candidates contain them, and they
// seldom change. Providers with the same traits share the memory of the traits. A traitCache never returns
// old traits: whoever asks says which version the database has.
type traitCache struct {
	mu     sync.Mutex
	max    int                    // maximum number of providers
	traits map[int64]cachedTraits // by ID of the provider
}

type cachedTraits struct {
	version traitVersion
	names   unique.Handle[inventory.TraitNames]
}

// get returns the traits of a provider, if the cache has this version of them.
func (c *traitCache) get(provider int64, v traitVersion) (names inventory.TraitNames, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, known := c.traits[provider]
	if !known || !t.version.equals(v) {
		return "", false
	}
	return t.names.Value(), true
}

// put keeps the traits of a provider, and forgets those of any other one if the cache is full.
func (c *traitCache) put(provider int64, v traitVersion, names inventory.TraitNames) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.traits[provider]; !known && len(c.traits) >= c.max {
		for other := range c.traits {
			delete(c.traits, other)
			break
		}
	}
	c.traits[provider] = cachedTraits{v, unique.Make(names)}
}

// readAllTraits sets Node.AllTraits of the given providers, whose traits have the given versions by ID of the
// provider. It reads only what the cache does not have.
func (c *traitCache) readAllTraits(
	ctx context.Context,
	tx db.Tx,
	nodes []*inventory.Node,
	versions map[int64]traitVersion,
) error {
	var missing []*inventory.Node
	var ids []int64
	for _, n := range nodes {
		var known bool
		if n.AllTraits, known = c.get(n.ID, versions[n.ID]); !known {
			missing, ids = append(missing, n), append(ids, n.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	all := newNameIndex()
	batch := &pgx.Batch{}
	batch.Queue(`select id, name, 0 from trait`).Query(all.read)
	batch.Queue(`
		select array(select trait_id from provider_trait where provider_id = requested.id order by trait_id)
		from unnest($1::bigint[]) with ordinality as requested (id, position)
		order by position`, ids).Query(func(rows pgx.Rows) error {
		var traits []int32
		position := 0
		_, err := pgx.ForEachRow(rows, []any{&traits}, func() error {
			n := missing[position]
			n.AllTraits = inventory.JoinTraits(all.namesOf(traits))
			c.put(n.ID, versions[n.ID], n.AllTraits)
			position++
			return nil
		})
		return err
	})
	return tx.SendBatch(ctx, batch).Close()
}
