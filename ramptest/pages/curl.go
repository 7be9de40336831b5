package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/access"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
)

// longHex finds what is too long to read, such as a logsBloom.
var longHex = regexp.MustCompile("0x([0-9a-fA-F]{8})[0-9a-fA-F]{192,}")

// content is a message for a reader: its headers and its body.
type content struct {
	Head, Rest string
	More       int  // how many lines Rest has
	Cut        bool // the record has only the beginning of the body
}

// part is a message with its name.
type part struct {
	Name    string
	Content content
}

func newPart(name string, c content) part { return part{name, c} }

// maxContent is how many lines of 80 characters of a long message are shown at once.
const maxContent = 80

// contentOf formats a message. JSON is indented, and long hex is cut.
func contentOf(m *control.Message) content {
	text := pretty(m)
	lines := strings.Split(text, "\n")
	c := content{Head: text, Cut: len(m.Body) >= history.MaxBody && strings.HasSuffix(m.Body, "…")}
	shown, room := 0, maxContent
	for shown < len(lines) && room > 0 {
		room -= 1 + len(lines[shown])/80
		shown++
	}
	if c.More = len(lines) - shown; c.More > maxContent/4 { // fewer are not worth folding
		c.Head, c.Rest = strings.Join(lines[:shown], "\n"), strings.Join(lines[shown:], "\n")
	}
	return c
}

// pretty formats the headers and the body of a message.
func pretty(m *control.Message) string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(m.Header[name], ", "))
	}
	if b.Len() > 0 && m.Body != "" {
		b.WriteByte('\n')
	}
	if json.Indent(&b, []byte(m.Body), "", "  ") != nil {
		b.WriteString(m.Body)
	}
	return longHex.ReplaceAllString(b.String(), "0x$1…")
}

// curl returns a request as a curl command, or none if there is no address. The record does not hold
// the token and the HMAC key, so the command takes them from the environment.
func (s *site) curl(e *control.Event) curlView {
	address := s.guard.URL
	if e.Kind != control.KindInitialize {
		address = s.gameAddress()
	}
	if address == "" || address == access.MemoryURL || e.Kind == control.KindRPC {
		return curlView{} // curl cannot reach it
	}
	signed := e.Kind != control.KindAssets
	var b strings.Builder
	if signed {
		fmt.Fprintf(&b, "BODY=%s\n", quote(e.Request.Body))
	}
	fmt.Fprintf(&b, "curl -i -X %s %s \\\n", e.Request.Method, quote(address+e.Request.Path))
	for _, name := range slices.Sorted(maps.Keys(e.Request.Header)) {
		switch strings.ToLower(name) {
		case "x-dapp-authorization":
			fmt.Fprintf(&b, "  -H \"%s: Bearer $RAMP_ACCESS_TOKEN\" \\\n", name)
		case "content-type", "x-dapp-sessionid":
			for _, value := range e.Request.Header[name] {
				fmt.Fprintf(&b, "  -H %s \\\n", quote(name+": "+value))
			}
		}
	}
	if !signed {
		return curlView{e.Number, strings.TrimSuffix(b.String(), " \\\n")}
	}
	if e.Fault != "missing HMAC" {
		over := `"$BODY"`
		if e.Fault == "tampered body" || e.Fault == "wrong HMAC" {
			over = "another" // as wrong as that of the forgery
		}
		fmt.Fprintf(&b, "  -H \"X-HMAC-Signature: $(printf %%s %s | ramp sign)\" \\\n", over)
	}
	b.WriteString("  --data-raw \"$BODY\"")
	return curlView{e.Number, b.String()}
}

// quote quotes a text as one word for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
