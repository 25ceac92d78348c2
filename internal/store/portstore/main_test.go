package portstore_test

import (
	"os"
	"testing"

	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
