// Package copytest tests what a studio does with a release: it copies an example out of
// the repository, by hand or with gonew, gets the release, builds and tests. It contains
// only tests.
package copytest
