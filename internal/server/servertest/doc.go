// Package servertest starts berth for tests: within the test's process, or as processes of its own that a test may kill. A package that uses
// it has
//
//	func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }
package servertest
