// Package codectest sends the values of package ramp through the codecs, configurations and comparers
// that studios use, forth and back.
package codectest
