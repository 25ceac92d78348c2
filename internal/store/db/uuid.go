package db

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// encodeUUIDs makes pgx send UUIDs in binary form. Without encodeUUIDs, pgx converts each uuid.UUID to text
// and back, because the type uuid.UUID implements driver.Valuer.
func encodeUUIDs(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append(
		[]pgtype.TryWrapEncodePlanFunc{func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
			id, ok := value.(uuid.UUID)
			if !ok {
				return nil, nil, false
			}
			return &uuidPlan{}, pgtype.UUID{Bytes: id, Valid: true}, true
		}},
		m.TryWrapEncodePlanFuncs...)
}

// uuidPlan encodes a value of type uuid.UUID with the encode plan for pgx's own UUID type.
type uuidPlan struct{ next pgtype.EncodePlan }

// SetNext sets the plan of pgx's own UUID type. Only pgx calls SetNext.
func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode appends the encoded UUID to the buffer.
func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(pgtype.UUID{Bytes: value.(uuid.UUID), Valid: true}, buf)
}
