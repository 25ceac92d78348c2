module github.com/temporalio/cli/cliext

go 1.26.11

require (
	github.com/spf13/pflag v1.0.10
	go.temporal.io/sdk v1.47.0
	go.temporal.io/sdk/contrib/envconfig v1.0.2
	go.temporal.io/server v1.32.1
	google.golang.org/grpc v1.83.2
)
