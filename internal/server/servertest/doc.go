// Package servertest starts berth for tests: inside the test process, or as separate processes that a test
// may kill. A package whose tests use servertest must contain this function:
//
//	func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }
package servertest
