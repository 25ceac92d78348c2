package agentstore_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/store/agentstore"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

func TestTokenHost_KnowsOnlyTokensThatAreNotRevoked(t *testing.T) {
	t.Parallel()
	s := storetest.New(t).Agents
	first, token, err := s.CreateToken(t.Context(), "cmp-1")
	if err != nil || first.Host != "cmp-1" || first.UsedOn != nil ||
		!strings.HasPrefix(token, agentstore.TokenPrefix) {
		t.Fatalf("create a token of cmp-1: got %+v, token %q, error %v", first, token, err)
	}
	_, second, err := s.CreateToken(t.Context(), "cmp-1")
	if err != nil || second == token {
		t.Fatalf("create a second token of cmp-1: got %q, error %v, want another token than %q",
			second, err, token)
	}
	last := len(token) - 1
	flipped := token[:last-1] + string(token[last-1]^1) + token[last:]
	for _, wrong := range []string{"", agentstore.TokenPrefix, token + "x", token[:last], strings.ToUpper(token), flipped} {
		if host, err := s.TokenHost(t.Context(), wrong); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("host of the wrong token %q: got %q, error %v, want ErrNotFound", wrong, host, err)
		}
	}
	for _, right := range []string{token, second, token} {
		if host, err := s.TokenHost(t.Context(), right); err != nil || host != "cmp-1" {
			t.Errorf("host of the token %q: got %q, error %v, want cmp-1", right, host, err)
		}
	}

	host, err := s.Revoke(t.Context(), agentstore.Token, first.ID)

	if err != nil || host != "cmp-1" {
		t.Errorf("revoke the token %s: got host %q, error %v, want cmp-1", first.ID, host, err)
	}
	if host, err := s.TokenHost(t.Context(), token); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("host of the revoked token: got %q, error %v, want ErrNotFound", host, err)
	}
	if _, err := s.TokenHost(t.Context(), second); err != nil {
		t.Errorf("host of the other token of cmp-1: got error %v, want none", err)
	}
	for _, id := range []uuid.UUID{first.ID, uuid.New()} {
		if _, err := s.Revoke(t.Context(), agentstore.Token, id); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("revoke the unknown token %s: got error %v, want ErrNotFound", id, err)
		}
	}
}

func TestTokens_ListTheDayOfTheLastUse(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url).Agents
	tokens := map[string]string{}
	for _, host := range []string{"net-1", "cmp-1"} {
		_, token, err := s.CreateToken(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		tokens[host] = token
	}
	storetest.Exec(t, url, `update agent_credential set used_on = '2020-02-02' where host = 'cmp-1'`)
	if _, err := s.TokenHost(t.Context(), tokens["cmp-1"]); err != nil {
		t.Fatal(err)
	}

	all, err := s.List(t.Context(), agentstore.Token, "")

	if err != nil || len(all) != 2 || all[0].Host != "cmp-1" || all[1].Host != "net-1" ||
		all[1].UsedOn != nil {
		t.Fatalf("list all tokens: got %+v, error %v, want cmp-1 and the unused token of net-1", all, err)
	}
	if used := all[0].UsedOn; used == nil || time.Since(*used) > 49*time.Hour {
		t.Errorf("last use of the token of cmp-1: got %v, want today", used)
	}
	if one, err := s.List(t.Context(), agentstore.Token, "net-1"); err != nil || len(one) != 1 ||
		one[0].Host != "net-1" {
		t.Errorf("list the tokens of net-1: got %+v, error %v, want one token", one, err)
	}
}

func TestCreateToken_StoresOnlyTheHash(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	_, token, err := storetest.Open(t, url).Agents.CreateToken(t.Context(), "cmp-1")
	if err != nil {
		t.Fatal(err)
	}
	var value []byte
	err = storetest.Connect(t, url).QueryRow(t.Context(), `select value from agent_credential`).Scan(&value)
	if want := sha256.Sum256([]byte(token)); err != nil || !bytes.Equal(value, want[:]) {
		t.Errorf("stored value of the token: got %x, error %v, want its SHA-256 %x", value, err, want)
	}
}
