package inventorystore

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// nameIndex maps the names of resource classes or traits to their IDs and back. For each name, nameIndex also
// contains the number of providers with this class or trait; the count stops at maxRareCount.
type nameIndex struct {
	names  map[int32]string
	ids    map[string]int32
	counts map[string]int
}

func newNameIndex() nameIndex {
	return nameIndex{map[int32]string{}, map[string]int32{}, map[string]int{}}
}

// read adds the rows of a query result, each with an ID, a name and a count, to the index.
func (x nameIndex) read(rows pgx.Rows) error {
	var id int32
	var name string
	var count int
	_, err := pgx.ForEachRow(rows, []any{&id, &name, &count}, func() error {
		x.names[id], x.ids[name], x.counts[name] = name, id, count
		return nil
	})
	return err
}

// namesOf returns the names of the resource classes or traits with the given IDs, in the order of the IDs.
func (x nameIndex) namesOf(ids []int32) []string {
	if len(ids) == 0 {
		return nil
	}
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = x.names[id]
	}
	return all
}

// idsOf returns the IDs of the resource classes or traits with the given names, in the order of the names.
// All given names must be in the index.
func (x nameIndex) idsOf(names []string) []int32 {
	all := make([]int32, len(names))
	for i, name := range names {
		all[i] = x.ids[name]
	}
	return all
}

// check returns a fault of the given kind if some of the names are not in the index. The parameter `format`
// is the message of the fault, with one formatting verb for the list of the names that are not in the index.
func (x nameIndex) check(names []string, kind inventory.Kind, format string) error {
	unknown := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, exists := x.ids[name]
		return exists
	})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return inventory.Faultf(kind, format, strings.Join(slices.Compact(unknown), ", "))
	}
	return nil
}

// Messages of faults about unknown names of resource classes and traits.
const (
	unknownClassMessage = "No such resource class %s."
	unknownTraitMessage = "No such trait(s): %s."
)
