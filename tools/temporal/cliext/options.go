// Package cliext contains the options that all commands of the temporal CLI share. The CLI imports a module
// of this name, but its releases do not publish that module: they replace it by a folder of the CLI's own
// repository. To build the CLI as a tool, berth therefore replaces the module by this package. This package
// has only the flags with which the CLI connects to a server and to a codec server. It has no flags for OAuth,
// so the CLI rejects these flags as unknown.
package cliext

import "github.com/spf13/pflag"

// CommonOptions are the global options.
type CommonOptions struct {
	Env, EnvFile            string
	ConfigFile, Profile     string
	DisableConfigFile       bool
	DisableConfigEnv        bool
	LogLevel, LogFormat     FlagStringEnum
	Output, TimeFormat      FlagStringEnum
	Color                   FlagStringEnum
	NoJsonShorthandPayloads bool
	CommandTimeout          FlagDuration
	ClientConnectTimeout    FlagDuration
}

// Description is the heading of the flags in the help.
func (*CommonOptions) Description() string { return "These options apply to every command.\n" }

// BuildFlags adds the flags to a set.
func (o *CommonOptions) BuildFlags(f *pflag.FlagSet) {
	o.LogLevel = NewFlagStringEnum([]string{"debug", "info", "warn", "error", "never"}, "never")
	o.LogFormat = NewFlagStringEnum([]string{"text", "json", "pretty"}, "text")
	o.Output = NewFlagStringEnum([]string{"text", "json", "jsonl", "none"}, "text")
	o.TimeFormat = NewFlagStringEnum([]string{"relative", "iso", "raw"}, "relative")
	o.Color = NewFlagStringEnum([]string{"always", "never", "auto"}, "auto")
	f.StringVar(&o.Env, "env", "default", "Name of the environment in the environment file.")
	f.StringVar(&o.EnvFile, "env-file", "", "Path of the environment file.")
	f.StringVar(&o.ConfigFile, "config-file", "", "Path of the TOML file with profiles.")
	f.StringVar(&o.Profile, "profile", "", "Name of the profile in the TOML file.")
	f.BoolVar(&o.DisableConfigFile, "disable-config-file", false, "Do not read the TOML file.")
	f.BoolVar(&o.DisableConfigEnv, "disable-config-env", false,
		"Do not read TEMPORAL_… environment variables.")
	f.Var(&o.LogLevel, "log-level",
		"debug, info, warn, error or never. The default of server start-dev is warn.")
	f.Var(&o.LogFormat, "log-format", "text or json.")
	f.VarP(&o.Output, "output", "o", "Format of the output: text, json, jsonl or none.")
	f.Var(&o.TimeFormat, "time-format", "relative, iso or raw.")
	f.Var(&o.Color, "color", "Colored output: always, never or auto.")
	f.BoolVar(&o.NoJsonShorthandPayloads, "no-json-shorthand-payloads", false,
		"Print payloads without decoding them.")
	f.Var(&o.CommandTimeout, "command-timeout", "Time limit of the command. 0s means none.")
	f.Var(&o.ClientConnectTimeout, "client-connect-timeout",
		"Time limit of the connection attempt. 0s means none.")
}

// ClientOptions are the options of the connection to a server.
type ClientOptions struct {
	Address, Namespace         string
	ClientAuthority            string
	ApiKey                     string
	GrpcMeta                   []string
	Identity                   string
	Tls                        bool
	TlsCertPath, TlsCertData   string
	TlsKeyPath, TlsKeyData     string
	TlsCaPath, TlsCaData       string
	TlsServerName              string
	TlsDisableHostVerification bool
	CodecEndpoint, CodecAuth   string
	CodecHeader                []string

	flags *pflag.FlagSet
}

// Description is the heading of the flags in the help.
func (*ClientOptions) Description() string { return "These options select the Temporal server.\n" }

// BuildFlags adds the flags to a set.
func (o *ClientOptions) BuildFlags(f *pflag.FlagSet) {
	own := pflag.NewFlagSet("client", pflag.ContinueOnError)
	own.StringVar(&o.Address, "address", "localhost:7233", "host:port of the server.")
	own.StringVarP(&o.Namespace, "namespace", "n", "default", "Temporal namespace.")
	own.StringVar(&o.ClientAuthority, "client-authority", "", "Value of the gRPC pseudo-header :authority.")
	own.StringVar(&o.ApiKey, "api-key", "", "API key.")
	own.StringArrayVar(&o.GrpcMeta, "grpc-meta", nil, "Header KEY=VALUE of each request. Can be repeated.")
	own.StringVar(&o.Identity, "identity", "",
		"Identity of the client. The default is the name of the user and of the machine.")
	own.BoolVar(&o.Tls, "tls", false,
		"Use TLS. An API key or another TLS option implies TLS; --tls=false disables it.")
	own.StringVar(&o.TlsCertPath, "tls-cert-path", "", "Path of the client's certificate.")
	own.StringVar(&o.TlsCertData, "tls-cert-data", "", "The client's certificate.")
	own.StringVar(&o.TlsKeyPath, "tls-key-path", "", "Path of the client's private key.")
	own.StringVar(&o.TlsKeyData, "tls-key-data", "", "The client's private key.")
	own.StringVar(&o.TlsCaPath, "tls-ca-path", "", "Path of the certificate of the server's CA.")
	own.StringVar(&o.TlsCaData, "tls-ca-data", "", "The certificate of the server's CA.")
	own.StringVar(&o.TlsServerName, "tls-server-name", "",
		"Host name that the server's certificate must have.")
	own.BoolVar(&o.TlsDisableHostVerification, "tls-disable-host-verification", false,
		"Do not check the server's certificate.")
	own.StringVar(&o.CodecEndpoint, "codec-endpoint", "",
		"URL of a codec server, without /decode. {namespace} stands for the namespace.")
	own.StringVar(&o.CodecAuth, "codec-auth", "",
		"Header Authorization of the requests to the codec server.")
	own.StringArrayVar(&o.CodecHeader, "codec-header", nil,
		"Header KEY=VALUE of the requests to the codec server. Can be repeated.")
	f.AddFlagSet(own)
	o.flags = own
}

// HideFlags removes the flags from the help of single commands. The command `options` shows these flags.
func (o *ClientOptions) HideFlags() {
	o.flags.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
}
