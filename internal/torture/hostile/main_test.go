package hostile

import (
	"os"
	"testing"

	"berth/internal/server/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }
