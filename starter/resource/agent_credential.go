package resource

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"berth/internal/contract"
	"berth/starter/cli"
)

// AgentTokens is the cli.Resource for the tokens with which agents use the HTTP API for agents (/agent/v1).
var AgentTokens = &cli.Resource{
	Name:      "agent token",
	Path:      "/operator/v1/agent-tokens",
	PluralKey: "agent_tokens",
	IDKey:     "id",
	NameKey:   "id",
	IsID:      cli.IsUUID,
	Columns:   []string{"id", "host", "created_at", "last_used_on"},
}

const tokenHelp = `Creates a token with which the agents of HOST report over HTTP, in the header X-Auth-Token. The token is valid for this host only,
until it is revoked. berth stores only a hash of it, so the token is printed once and cannot be read again. With BERTH_AUTH=noauth the
gateway accepts no agent tokens.`

func createAgentToken(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		o, err := AgentTokens.Create(ctx, s, cli.Object{"host": args[0]})
		if err != nil {
			return err
		}
		return s.Output.PrintObject(o, []string{"id", "host", "token"})
	}
}

// AgentKeys is the cli.Resource for the public keys that verify the signed reports of agents.
var AgentKeys = &cli.Resource{
	Name:      "agent key",
	Path:      "/operator/v1/agent-keys",
	PluralKey: "agent_keys",
	IDKey:     "id",
	NameKey:   "id",
	IsID:      cli.IsUUID,
	Columns:   []string{"id", "host", "created_at"},
}

const keyHelp = `Registers the Ed25519 public key in the file of --public-key, in the PEM format. Without --public-key the command makes a new pair of
keys, registers the public key, and prints the private key once; berth never gets it. The agents of HOST sign their reports to workflows
with the private key, as ` + "`starter signal --key FILE`" + ` does.`

func addAgentKey(f *pflag.FlagSet) cli.Action {
	file := f.String("public-key", "", "PEM file with the Ed25519 public key")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		public, private, err := readOrMakeKey(*file)
		if err != nil {
			return err
		}
		o, err := AgentKeys.Create(ctx, s, cli.Object{"host": args[0], "public_key": public})
		if err != nil {
			return err
		}
		if private == "" {
			return s.Output.PrintObject(o, []string{"id", "host"})
		}
		if s.Output.Format == "table" {
			// without a prefix or table, so that the output can be written to a file
			_, err = fmt.Fprint(s.Output.Writer, private)
			return err
		}
		o["private_key"] = private
		return s.Output.PrintDocument(o)
	}
}

// readOrMakeKey returns the public key in a file, or the public and the private key of a new pair if no file
// is named. Keys are PEM texts.
func readOrMakeKey(file string) (public, private string, err error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", "", cli.UsageError("--public-key: %s", err)
		}
		return string(text), "", nil
	}
	publicKey, privateKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", "", fmt.Errorf("make a pair of keys: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(publicKey)
	if err != nil {
		return "", "", fmt.Errorf("encode the public key: %w", err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(privateKey)
	if err != nil {
		return "", "", fmt.Errorf("encode the private key: %w", err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("PUBLIC KEY", publicDER), encode("PRIVATE KEY", privateDER), nil
}

// signReport signs a report to a workflow with the private key in a file. signReport returns a usage error
// for a report that berth would refuse although the signature is right, because the sender of a signal does
// not learn that the report was refused.
func signReport(
	r contract.Report,
	file, workflow string,
	now time.Time,
	lifetime time.Duration,
) (contract.Report, error) {
	if lifetime <= 0 || lifetime > contract.MaxReportLifetime {
		return r, cli.UsageError("--expires-in %s must be more than 0 and at most %s",
			lifetime, contract.MaxReportLifetime)
	}
	private, err := readPrivateKey(file)
	if err != nil {
		return r, err
	}
	signed := r.Sign(private, workflow, now.Add(lifetime))
	if refused := signed.Verify(workflow, []ed25519.PublicKey{private.Public().(ed25519.PublicKey)}, now); refused != "" {
		return r, cli.UsageError("--key: berth would refuse the report: %s", refused.Sentence())
	}
	return signed, nil
}

// readPrivateKey reads an Ed25519 private key from a PEM file, as `openssl genpkey -algorithm ed25519` writes
// it.
func readPrivateKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.UsageError("--key: %s", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := parsed.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, cli.UsageError("--key: %s has no Ed25519 private key in the PEM format", file)
}
