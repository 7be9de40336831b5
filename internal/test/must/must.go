// Package must is for tests. A step that cannot go on ends its test, and says why. A panic would end all the
// other tests, too.
package must

import "testing"

// Get returns a function that returns value to a test, or ends the test if err is not nil:
//
//	text := must.Get(os.ReadFile(path))(t)
//
// Call it on the goroutine of the test. On another one, use t.Error and return.
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
