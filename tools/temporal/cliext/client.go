package cliext

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
)

// NewLogger returns a logger with the level and the format of the options.
func NewLogger(o CommonOptions, w io.Writer) (*slog.Logger, error) {
	if o.LogLevel.Value == "never" {
		return slog.New(slog.DiscardHandler), nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel.Value)); err != nil {
		return nil, fmt.Errorf("invalid log level: %w", err)
	}
	if o.LogFormat.Value == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}

// ClientOptionsBuilder computes the options of the SDK's client from flags, environment variables and the
// TOML file. A flag overrides a variable, and a variable overrides the file.
type ClientOptionsBuilder struct {
	CommonOptions CommonOptions
	ClientOptions ClientOptions
	EnvLookup     envconfig.EnvLookup
	Logger        *slog.Logger

	PayloadCodec converter.PayloadCodec // Build sets it; nil without a codec server
}

// Build computes the options.
func (b *ClientOptionsBuilder) Build(context.Context) (client.Options, error) {
	var p envconfig.ClientConfigProfile
	if c := b.CommonOptions; !c.DisableConfigFile || !c.DisableConfigEnv {
		var err error
		p, err = envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
			ConfigFilePath:    c.ConfigFile,
			ConfigFileProfile: c.Profile,
			DisableFile:       c.DisableConfigFile,
			DisableEnv:        c.DisableConfigEnv,
			EnvLookup:         b.EnvLookup,
		})
		if err != nil {
			return client.Options{}, fmt.Errorf("load the profile: %w", err)
		}
	}
	if err := b.ClientOptions.apply(&p); err != nil {
		return client.Options{}, err
	}
	o, err := p.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, fmt.Errorf("read the options of the connection: %w", err)
	}
	o.Identity = b.ClientOptions.Identity
	if b.Logger != nil {
		o.Logger = log.NewStructuredLogger(b.Logger)
	}
	if p.Codec == nil || p.Codec.Endpoint == "" {
		return o, nil
	}
	return o, b.useCodec(&o, *p.Codec)
}

// useCodec makes the client encode and decode payloads and failures with a codec server.
func (b *ClientOptionsBuilder) useCodec(o *client.Options, c envconfig.ClientConfigCodec) error {
	headers := map[string]string{"X-Namespace": o.Namespace}
	for _, pair := range b.ClientOptions.CodecHeader {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("--codec-header %q is not of the form KEY=VALUE", pair)
		}
		headers[key] = value
	}
	if c.Auth != "" {
		headers["Authorization"] = c.Auth
	}
	b.PayloadCodec = converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: strings.ReplaceAll(c.Endpoint, "{namespace}", o.Namespace),
		ModifyRequest: func(r *http.Request) error {
			for key, value := range headers {
				r.Header.Set(key, value)
			}
			return nil
		},
	})
	failures, err := converter.NewFailureGRPCClientInterceptor(
		converter.NewFailureGRPCClientInterceptorOptions{EncodeCommonAttributes: true},
	)
	if err != nil {
		return fmt.Errorf("decode failures: %w", err)
	}
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(
		converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: []converter.PayloadCodec{b.PayloadCodec}},
	)
	if err != nil {
		return fmt.Errorf("decode payloads: %w", err)
	}
	// The first interceptor sees a request first and a response last.
	o.ConnectionOptions.DialOptions = append(
		o.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(failures, payloads),
	)
	return nil
}

// apply overrides the values of a profile by the flags that are set, and fills missing values with the flags'
// defaults.
func (o *ClientOptions) apply(p *envconfig.ClientConfigProfile) error {
	if o.changed("address") || p.Address == "" {
		p.Address = o.Address
	}
	if o.changed("namespace") || p.Namespace == "" {
		p.Namespace = o.Namespace
	}
	override(&p.APIKey, o.ApiKey)
	override(&p.Authority, o.ClientAuthority)
	if o.CodecEndpoint != "" || o.CodecAuth != "" {
		if p.Codec == nil {
			p.Codec = &envconfig.ClientConfigCodec{}
		}
		override(&p.Codec.Endpoint, o.CodecEndpoint)
		override(&p.Codec.Auth, o.CodecAuth)
	}
	for _, pair := range o.GrpcMeta {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("--grpc-meta %q is not of the form KEY=VALUE", pair)
		}
		if p.GRPCMeta == nil {
			p.GRPCMeta = map[string]string{}
		}
		p.GRPCMeta[envconfig.NormalizeGRPCMetaKey(key)] = value
	}
	o.applyTLS(p)
	return nil
}

func (o *ClientOptions) applyTLS(p *envconfig.ClientConfigProfile) {
	if o.changed("tls") && !o.Tls {
		p.TLS = &envconfig.ClientConfigTLS{Disabled: true}
		return
	}
	values := o.TlsCertPath + o.TlsCertData + o.TlsKeyPath + o.TlsKeyData + o.TlsCaPath + o.TlsCaData + o.TlsServerName
	if !o.Tls && !o.TlsDisableHostVerification && values == "" {
		return
	}
	if p.TLS == nil || p.TLS.Disabled {
		p.TLS = &envconfig.ClientConfigTLS{}
	}
	override(&p.TLS.ClientCertPath, o.TlsCertPath)
	override(&p.TLS.ClientKeyPath, o.TlsKeyPath)
	override(&p.TLS.ServerCACertPath, o.TlsCaPath)
	override(&p.TLS.ServerName, o.TlsServerName)
	override(&p.TLS.ClientCertData, []byte(o.TlsCertData))
	override(&p.TLS.ClientKeyData, []byte(o.TlsKeyData))
	override(&p.TLS.ServerCACertData, []byte(o.TlsCaData))
	p.TLS.DisableHostVerification = p.TLS.DisableHostVerification || o.TlsDisableHostVerification
}

// changed reports whether the command line or an environment file contains the flag.
func (o *ClientOptions) changed(name string) bool { return o.flags != nil && o.flags.Changed(name) }

func override[T string | []byte](target *T, value T) {
	if len(value) > 0 {
		*target = value
	}
}
