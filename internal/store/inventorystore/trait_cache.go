package inventorystore

import (
	"context"
	"time"
	"unique"

	"github.com/jackc/pgx/v5"

	"berth/internal/cache"
	"berth/internal/inventory"
	"berth/internal/store/db"
)

// traitVersion identifies the traits that a provider has: every change of traits increments the generation of
// the provider and sets the time of its change. The time is needed because a generation may come again, when
// a standby that lacks the newest transactions replaces the database.
type traitVersion struct {
	generation int64
	changedAt  time.Time // of the provider
}

// maxCachedTraits is the maximum number of providers whose traits a process keeps: about 20 MB without the
// names.
const maxCachedTraits = 200_000

// traitCache keeps all traits of providers by the ID of the provider, because summaries of allocation
// candidates contain them, and they seldom change. Providers with the same traits share the memory of the
// traits. Who asks for traits says which version the database has, so old traits are never returned.
type traitCache struct {
	*cache.Cache[int64, cachedTraits]
}

func newTraitCache(limit int) traitCache { return traitCache{cache.New[int64, cachedTraits](limit)} }

type cachedTraits struct {
	version traitVersion
	names   unique.Handle[inventory.TraitNames]
}

// find returns the traits of a provider, if the cache has this version of them.
func (c traitCache) find(provider int64, v traitVersion) (names inventory.TraitNames, ok bool) {
	t, ok := c.Get(provider)
	if !ok || t.version.generation != v.generation || !t.version.changedAt.Equal(v.changedAt) {
		return "", false
	}
	return t.names.Value(), true
}

// readAllTraits sets Node.AllTraits of the given providers, whose traits have the given versions by ID of the
// provider. It reads only what the cache does not have.
func (c traitCache) readAllTraits(
	ctx context.Context,
	tx db.Tx,
	nodes []*inventory.Node,
	versions map[int64]traitVersion,
) error {
	var missing []*inventory.Node
	var ids []int64
	for _, n := range nodes {
		var known bool
		if n.AllTraits, known = c.find(n.ID, versions[n.ID]); !known {
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
			c.Put(n.ID, cachedTraits{versions[n.ID], unique.Make(n.AllTraits)})
			position++
			return nil
		})
		return err
	})
	return tx.SendBatch(ctx, batch).Close()
}
