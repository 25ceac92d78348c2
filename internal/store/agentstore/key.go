package agentstore

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// maxKeys is the maximum number of keys of a host. A wrong signature is compared with every key of the host,
// so maxKeys limits the time that this takes.
const maxKeys = 8

// AddKey registers a public key of a host's agents. AddKey returns db.ErrConflict if the key is already
// registered, for this or another host, or if the host has maxKeys keys.
func (s *Store) AddKey(ctx context.Context, host string, key ed25519.PublicKey) (Credential, error) {
	var c Credential
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		// Without this lock, concurrent calls would not count the keys that the other calls insert, and the
		// host could get more than maxKeys keys.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('keys of agents ' || $1::text, 0))`, host); err != nil {
			return err
		}
		c, err = db.QueryOne(ctx, tx, pgx.RowToStructByPos[Credential], db.ErrConflict, `
			insert into agent_credential (host, kind, value)
			select $1, 'key', $2
			where (select count(*) from agent_credential where host = $1 and kind = 'key') < $3
			on conflict (kind, value) do nothing
			returning `+credentialColumns, host, []byte(key), maxKeys)
		tx.Changed(db.Change{Type: Key.auditType(), ID: c.ID.String()})
		return err
	})
	switch {
	case errors.Is(err, db.ErrConflict):
		return Credential{}, fmt.Errorf("%w: the key is already registered, or the host %s has %d keys, which is the maximum",
			err, host, maxKeys)
	case err != nil:
		return Credential{}, fmt.Errorf("register a key of the host %s: %w", host, err)
	}
	return c, nil
}

// PublicKeys returns the registered public keys of the given hosts, by host.
func (s *Store) PublicKeys(ctx context.Context, hosts []string) (map[string][]ed25519.PublicKey, error) {
	if len(hosts) == 0 {
		return nil, nil
	}
	type row struct {
		Host  string
		Value []byte
	}
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[row],
		`select host, value from agent_credential where kind = 'key' and host = any($1)`, hosts)
	if err != nil {
		return nil, fmt.Errorf("read the keys of agents: %w", err)
	}
	keys := map[string][]ed25519.PublicKey{}
	for _, r := range all {
		keys[r.Host] = append(keys[r.Host], ed25519.PublicKey(r.Value))
	}
	return keys, nil
}
