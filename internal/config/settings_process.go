package config

import "time"

var processSettings = Section{"Processes, API and database", []Setting{
	{Name: File, Unit: "path",
		Description: "YAML file with further settings. Its keys are the names of the variables in lower case without BERTH_; a value in the environment overrides the value in the file."},
	{Name: "BERTH_LISTEN", Default: "127.0.0.1:8778", Unit: "host:port",
		Description: "Address of the HTTP listener for the APIs, the health checks and the metrics.", set: listen},
	{Name: "BERTH_DATABASE_URL", Unit: "URL", Secret: true,
		Description: "PostgreSQL database, in the form postgres://user:password@host:port/database.",
		set:         text(func(c *Config) *string { return &c.DatabaseURL })},
	{Name: "BERTH_REQUEST_TIMEOUT", Default: "30s", Unit: "duration up to 50s",
		Description: "Maximum duration of an API request. berth answers a request that takes longer, for example because the database does not answer, with the status 503.",
		set:         requestTimeout},
	{Name: "BERTH_TRUSTED_PROXIES", Unit: "list of addresses or networks",
		Description: "Reverse proxies whose headers X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-Prefix berth uses to build the URLs that it returns, for example in the header Location. Without this setting, berth ignores these headers.",
		set:         trustedProxies},
	{Name: "BERTH_AUTH", Default: Noauth, Unit: "noauth or keystone",
		Description: "Authentication of requests. noauth accepts every token and works on loopback only; keystone needs OS_AUTH_URL and the service user.", set: auth},
	{Name: "BERTH_POLICY_FILE", Unit: "path",
		Description: "YAML file with oslo.policy rules that replace Placement's default rules. berth reads the file again when the file changes.",
		set:         text(func(c *Config) *string { return &c.Policy.File })},
	{Name: "BERTH_ENFORCE_NEW_DEFAULTS", Default: "on", Unit: "on or off",
		Description: "off: for operations without a rule in the policy file, a request is also allowed if the default rules of older OpenStack releases allow it.",
		set:         onOff(func(c *Config) *bool { return &c.Policy.EnforceNewDefaults })},
	{Name: "BERTH_ROLES", Default: "api,relay,temporal", Unit: "list of api, relay, temporal, rpc",
		Description: "Roles of this process. The flag -roles overrides this setting.",
		set:         func(c *Config, s string) (err error) { c.Roles, err = ParseRoles(s); return err }},
	{Name: "BERTH_LOG_LEVEL", Default: "info", Unit: "debug, info, warn or error",
		Description: "Lowest level of the log messages that are written.",
		set:         func(c *Config, s string) error { return logLevel(&c.LogLevel, s) }},
}}

var keystoneSettings = Section{"Keystone", []Setting{
	{Name: "OS_AUTH_URL", Unit: "URL", Description: "Keystone's endpoint, for example http://host:5000/v3.",
		set: httpURL(func(c *Config) *string { return &c.Service.AuthURL })},
	{Name: "OS_USERNAME", Unit: "text", Description: "Name of berth's service user at Keystone.",
		set: text(func(c *Config) *string { return &c.Service.Username })},
	{Name: "OS_PASSWORD", Unit: "text", Secret: true, Description: "Password of the service user.",
		set: text(func(c *Config) *string { return &c.Service.Password })},
	{Name: "OS_PROJECT_NAME", Unit: "text", Description: "Project of the service user.",
		set: text(func(c *Config) *string { return &c.Service.Project })},
	{Name: "OS_USER_DOMAIN_NAME", Default: "Default", Unit: "text", Description: "Domain of the service user.",
		set: text(func(c *Config) *string { return &c.Service.UserDomain })},
	{Name: "OS_PROJECT_DOMAIN_NAME", Default: "Default", Unit: "text", Description: "Domain of the service user's project.",
		set: text(func(c *Config) *string { return &c.Service.ProjectDomain })},
	{Name: "OS_REGION_NAME", Unit: "text", Description: "Region of the service catalog.",
		set: text(func(c *Config) *string { return &c.Service.Region })},
	{Name: "OS_CACERT", Unit: "path", Description: "PEM file with Keystone's certificate authority.",
		set: text(func(c *Config) *string { return &c.Service.CAFile })},
}}

var corsSettings = Section{"CORS", []Setting{
	{Name: "BERTH_CORS_ALLOWED_ORIGIN", Unit: "list of origins",
		Description: "Origins whose web pages may call the APIs from a browser, in the form https://host[:port]; * allows all. Without this setting CORS is off.", set: origins},
	{Name: "BERTH_CORS_ALLOW_CREDENTIALS", Default: "on", Unit: "on or off", Description: "Whether pages of the allowed origins may send credentials.",
		set: onOff(func(c *Config) *bool { return &c.CORS.Credentials })},
	{Name: "BERTH_CORS_ALLOW_HEADERS", Default: "X-Auth-Token,OpenStack-API-Version,X-OpenStack-Request-ID,X-Project-Id,X-Roles", Unit: "list of headers",
		Description: "Request headers that pages of the allowed origins may send.", set: list(func(c *Config) *[]string { return &c.CORS.Headers })},
	{Name: "BERTH_CORS_ALLOW_METHODS", Default: "GET,PUT,POST,DELETE,PATCH", Unit: "list of methods",
		Description: "HTTP methods that pages of the allowed origins may use.", set: list(func(c *Config) *[]string { return &c.CORS.Methods })},
	{Name: "BERTH_CORS_EXPOSE_HEADERS", Default: "OpenStack-API-Version,X-OpenStack-Request-ID,Location,Retry-After", Unit: "list of headers",
		Description: "Response headers that pages of the allowed origins may read.", set: list(func(c *Config) *[]string { return &c.CORS.Expose })},
	{Name: "BERTH_CORS_MAX_AGE", Default: "1h", Unit: "duration", Description: "How long browsers may cache the answer to a preflight request.",
		set: duration(func(c *Config) *time.Duration { return &c.CORS.MaxAge })},
}}

var cliSettings = Section{"The command line `starter`", []Setting{
	{Name: "BERTH_URL", Unit: "URL", Description: "The API that starter calls, in the form http://host:port.",
		set: httpURL(func(c *Config) *string { return &c.Client.URL })},
	{Name: "BERTH_TOKEN", Default: "admin", Unit: "text", Secret: true, Description: "X-Auth-Token that starter sends to the API.",
		set: text(func(c *Config) *string { return &c.Client.Token })},
}}

var devSettings = Section{"Development run (`worker --dev`) and tests", []Setting{
	{Name: "BERTH_DATA", Default: ".berth", Unit: "path", Description: "Folder with all data of the embedded services.",
		set: text(func(c *Config) *string { return &c.Dev.Data })},
	{Name: "BERTH_DEV_DATABASE_PORT", Default: "8779", Unit: "port", Description: "Port of the embedded PostgreSQL; 0 chooses a free one.",
		set: port(func(c *Config) *int { return &c.Dev.DatabasePort })},
	{Name: "BERTH_DEV_TEMPORAL_PORT", Default: "7233", Unit: "port", Description: "Port of the embedded Temporal server; 0 chooses a free one.",
		set: port(func(c *Config) *int { return &c.Dev.TemporalPort })},
	{Name: "BERTH_DEV_UI_PORT", Default: "8233", Unit: "port", Description: "Port of Temporal's UI; 0 chooses a free one.",
		set: port(func(c *Config) *int { return &c.Dev.UIPort })},
	{Name: "BERTH_DEV_ODL_PORT", Default: "8181", Unit: "port", Description: "Port of the stub of OpenDaylight; 0 chooses a free one.",
		set: port(func(c *Config) *int { return &c.Dev.ODLPort })},
	{Name: "BERTH_DEMO", Default: "on", Unit: "on or off", Description: "Whether `worker --dev` runs `starter demo` after the start.",
		set: onOff(func(c *Config) *bool { return &c.Dev.Demo })},
	{Name: temporalCLI, Unit: "path",
		Description: "The temporal binary that `worker --dev` and the tests run. Without this setting, berth uses the temporal binary on PATH, or builds one."},
}}
