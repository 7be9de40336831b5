package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// signature has the form of an HMAC. A proxy cannot verify it.
const signature = "X-HMAC-SIGNATURE: 0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef\r\n"

// told sends a request as it is written, and returns the status of the answer, or "no answer".
func told(t *testing.T, connection net.Conn, request string) string {
	t.Helper()
	defer connection.Close()
	check(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	go func() { _, _ = io.WriteString(connection, request) }() // a proxy may answer before it has read all
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return "no answer"
	}
	_ = response.Body.Close()
	return fmt.Sprint(response.StatusCode)
}

// repeated reports whether the service makes a call again after what it saw: a status, or no answer.
func repeated(seen string) bool { return seen == "500" || seen == "no answer" }
