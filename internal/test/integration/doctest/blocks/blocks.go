// Package blocks has the Go blocks of the documents in their places. Its test is compiled with the tag
// docs only.
package blocks
