// Package reach says why a call did not reach a server, or why its answer cannot be read. The pages, the
// commands and the control API of an emulator say the same of it, and no more than was seen.
package reach

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Why says why a call to an address failed. It is "" if the text of err says as much.
func Why(ctx context.Context, address string, err error) string {
	host := address
	if u, parsed := url.Parse(address); parsed == nil && u.Host != "" {
		host = u.Host
	}
	var (
		dial      *net.OpError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		other     x509.HostnameError
		invalid   x509.CertificateInvalidError
		plain     tls.RecordHeaderError
	)
	text := err.Error()
	switch {
	case errors.As(err, &dial) && dial.Op == "proxyconnect":
		return "the proxy that $HTTP_PROXY or $HTTPS_PROXY names cannot be reached"
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf(
			"no address is known here for the name %s; inside of a container, other names are "+
				"known than outside", name.Name)
	case errors.As(err, &authority):
		return "its certificate is from an authority that is not known here: on Linux, " +
			"$SSL_CERT_FILE names a " +
			"file with the certificate of yours"
	case errors.As(err, &other):
		return "its certificate is not for " + host
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired, or is not valid yet"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &plain):
		return "it does not speak TLS: the address must begin with http://"
	case strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return "it speaks TLS: the address must begin with https://"
	case Refused(err):
		return "nothing listens at " + host + otherLoopback(ctx, host)
	case Closed(err) && !errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer"
	}
	return ""
}

// Refused reports whether a connection was refused. Of the errors of system calls the text is read, because
// package syscall does not name them alike on all platforms.
func Refused(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && strings.Contains(call.Error(), "refused")
}

// Closed reports whether the connection was closed before the end of an answer.
func Closed(err error) bool {
	var call *os.SyscallError
	if errors.As(err, &call) {
		text := call.Error()
		return strings.Contains(text, "connection reset") || strings.Contains(text, "broken pipe") ||
			strings.Contains(text, "forcibly closed") // Windows
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// otherLoopback names the other loopback address of this machine, if something listens there: a server that
// listens at "localhost" may be at one of them only.
func otherLoopback(ctx context.Context, host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return ""
	}
	other := map[string]string{"127.0.0.1": "::1", "::1": "127.0.0.1"}[name]
	if other == "" {
		return ""
	}
	at := net.JoinHostPort(other, port)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	found, err := new(net.Dialer).DialContext(short, "tcp", at)
	if err != nil {
		return ""
	}
	_ = found.Close() // nothing was asked
	return ", but something does at " + at
}

// Body says what an answer that is no JSON is instead, or "".
func Body(header http.Header, body []byte) string {
	encoding := header.Get("Content-Encoding")
	switch {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Sprintf("it is encoded as %.20q, for which nobody asked", encoding)
	case saysTLS(body):
		return "the server speaks TLS, so its address must begin with https://"
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return "it begins with a byte order mark"
	case bytes.HasPrefix(body, []byte("\xff\xfe")), bytes.HasPrefix(body, []byte("\xfe\xff")):
		return "it is in UTF-16"
	case bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(body)), []byte("<!doctype html")),
		bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(body)), []byte("<html")):
		return "it is an HTML page"
	}
	return ""
}

// saysTLS reports whether a server says that it speaks TLS, as those of Go and nginx do.
func saysTLS(body []byte) bool {
	return bytes.Contains(body, []byte("HTTP request to an HTTPS server")) ||
		bytes.Contains(body, []byte("plain HTTP request was sent to HTTPS port"))
}

// Explained is an error whose text is an explanation of its cause.
type Explained struct {
	Text  string
	Cause error
}

func (e *Explained) Error() string { return e.Text }
func (e *Explained) Unwrap() error { return e.Cause }
