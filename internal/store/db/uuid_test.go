package db

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

func TestAUUIDIsSentAsItIs(t *testing.T) {
	t.Parallel()
	m := pgtype.NewMap()
	encodeUUIDs(m)
	id := uuid.MustParse("6a8ff5ae-0a4e-4f49-8f9c-0f9bb2ac1111")
	for name, c := range map[string]struct {
		oid    uint32
		format int16
		value  any
		want   string
	}{
		"to a uuid":         {pgtype.UUIDOID, pgtype.BinaryFormatCode, id, string(id[:])},
		"through a pointer": {pgtype.UUIDOID, pgtype.BinaryFormatCode, &id, string(id[:])},
		"to a text":         {pgtype.TextOID, pgtype.TextFormatCode, id, id.String()},
		"to an array":       {pgtype.UUIDArrayOID, pgtype.TextFormatCode, []uuid.UUID{id}, "{" + id.String() + "}"},
	} {
		got, err := m.Encode(c.oid, c.format, c.value, nil)
		if err != nil || string(got) != c.want {
			t.Errorf("send %s: got %q, error %v, want %q", name, got, err, c.want)
		}
	}
	var none *uuid.UUID
	if got, err := m.Encode(pgtype.UUIDOID, pgtype.BinaryFormatCode, none, nil); got != nil || err != nil {
		t.Errorf("send a nil UUID pointer: got %q, error %v, want null", got, err)
	}
}
