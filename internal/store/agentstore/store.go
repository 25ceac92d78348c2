// Package agentstore stores what proves that a message comes from the agents of one host: the credentials of
// agents, and the virtual hosts of RabbitMQ that only the agents of one host use. The package networkstore
// stores the agents themselves.
package agentstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// TokenPrefix is the beginning of every agent token. Keystone's tokens do not begin with TokenPrefix, and
// programs that look for published secrets can recognize an agent token by it.
const TokenPrefix = "berth_agent_"

// secretBytes is the number of random bytes in a token. An attacker cannot guess
// 32 random bytes, so a fast hash without a salt is enough to protect the token.
const secretBytes = 32

// Store reads and writes the credentials of agents.
type Store struct{ db *db.DB }

// New returns a Store on a database.
func New(d *db.DB) *Store { return &Store{d} }

// Credential describes a credential, without its secret.
type Credential struct {
	ID        uuid.UUID
	Host      string
	CreatedAt time.Time
	UsedOn    *time.Time // the last day, in UTC, on which the credential was used; nil: never
}

const credentialColumns = `id, host, created_at, used_on`

// CreateToken creates a token for the agents of a host. The returned token exists only in the result, because
// the row contains only the token's SHA-256.
func (s *Store) CreateToken(ctx context.Context, host string) (c Credential, token string, err error) {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails; see the documentation of rand.Read
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
	digest := sha256.Sum256([]byte(token))
	err = s.db.InTx(ctx, func(tx db.Tx) (err error) {
		c, err = db.QueryOne(ctx, tx, pgx.RowToStructByPos[Credential], pgx.ErrNoRows, `
			insert into agent_credential (host, kind, value)
			values ($1, 'token', $2)
			returning `+credentialColumns, host, digest[:])
		tx.Changed(db.Change{Type: Token.auditType(), ID: c.ID.String()})
		return err
	})
	if err != nil {
		return Credential{}, "", fmt.Errorf("create a token of host %s: %w", host, err)
	}
	return c, token, nil
}

// TokenHost returns the host to which a token belongs, and records that the token is used today. TokenHost
// returns db.ErrNotFound for an unknown or revoked token. The database compares hashes, and a caller cannot
// choose the hash of a token, so the duration of the comparison tells a caller nothing about the tokens that
// exist.
func (s *Store) TokenHost(ctx context.Context, token string) (string, error) {
	if !strings.HasPrefix(token, TokenPrefix) ||
		len(token) != len(TokenPrefix)+base64.RawURLEncoding.EncodedLen(secretBytes) {
		return "", fmt.Errorf("%w: no agent token has this form", db.ErrNotFound)
	}
	digest := sha256.Sum256([]byte(token))
	host, err := db.QueryOne(ctx, s.db, pgx.RowTo[string], db.ErrNotFound, `
		with found as (
			select id, host from agent_credential where kind = 'token' and value = $1
		), used as (
			update agent_credential c
			set used_on = (now() at time zone 'UTC')::date
			from found
			where c.id = found.id and c.used_on is distinct from (now() at time zone 'UTC')::date
		)
		select host from found`, digest[:])
	if err != nil {
		return "", fmt.Errorf("read the agent token: %w", err)
	}
	return host, nil
}

// Kind is the kind of a credential.
type Kind string

// The kinds of credentials.
const (
	Token Kind = "token" // authenticates requests over HTTP
	Key   Kind = "key"   // public key that verifies reports to workflows
)

// auditType returns the type of the credentials of a kind in the audit log.
func (k Kind) auditType() string { return "agent_" + string(k) }

// List lists the credentials of a kind and of a host, or of all hosts if the host is empty, ordered by host
// and age.
func (s *Store) List(ctx context.Context, kind Kind, host string) ([]Credential, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[Credential], `
		select `+credentialColumns+`
		from agent_credential
		where kind = $1 and ($2 = '' or host = $2)
		order by host, created_at, id`, kind, host)
	if err != nil {
		return nil, fmt.Errorf("list the agents' credentials of the kind %s: %w", kind, err)
	}
	return all, nil
}

// Revoke deletes a credential and returns its host. From then on, berth refuses requests and reports that
// this credential authenticates. Revoke returns db.ErrNotFound if the credential does not exist.
func (s *Store) Revoke(ctx context.Context, kind Kind, id uuid.UUID) (host string, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		return tx.QueryRow(ctx, `delete from agent_credential where id = $1 and kind = $2 returning host`, id, kind).
			Scan(&host)
	})
	return host, db.NotFoundOr(err, "the agents' %s %s does not exist", kind, id)
}
