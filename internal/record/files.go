package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// files writes what passed into a folder, without secrets.
type files struct {
	folder  string
	mask    masker
	secrets []string // of the configuration
	key     ramp.HMACKey
	signer  *ramp.Signer
	log     *os.File // calls.jsonl

	written, unsigned int64 // bytes of bodies, of all and of unsigned calls
}

// The most bytes of bodies that a recording has: of all calls, and of those that anybody can send.
const maxWritten, maxUnsigned = 256 << 20, 16 << 20

func openFiles(folder string, salt []byte, secrets []string) (*files, error) {
	key, err := ramp.TextKey(TestHMACKey)
	if err != nil {
		return nil, err
	}
	signer, err := ramp.NewKeySigner(TestValidatorKey)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(folder, "calls.jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s has a recording already; name an empty folder", folder)
	}
	if err != nil {
		return nil, err
	}
	return &files{folder: folder, mask: masker{salt}, secrets: secrets, key: key, signer: signer,
		log: log}, nil
}

// entry is a line of calls.jsonl.
type entry struct {
	Call          int               `json:"call"`
	Time          time.Time         `json:"time"`
	Kind          kind              `json:"kind"`
	Method        string            `json:"method"`
	Path          string            `json:"path,omitempty"`
	Headers       map[string]string `json:"headers"`
	Bytes         int64             `json:"bytes"`
	Body          string            `json:"body,omitempty"`     // the name of a file, or why there is none
	HMAC          string            `json:"hmac,omitempty"`     // the reading of the key that made it
	Unsigned      bool              `json:"unsigned,omitempty"` // anybody may have sent it
	Took          string            `json:"took"`
	Status        int               `json:"status"` // 0 if there was no answer
	Failure       string            `json:"failure,omitempty"`
	AnswerHeaders map[string]string `json:"answer_headers"`
	AnswerBytes   int64             `json:"answer_bytes"`
	Answer        string            `json:"answer,omitempty"`
}

// shown are the headers whose values are written as they are. Those of others are masked.
var shown = []string{
	"Accept", "Accept-Encoding", "Allow", "Cache-Control", "Connection", "Content-Encoding", "Content-Length",
	"Content-Type",
	"Date", "Origin", "Retry-After", "Sec-Fetch-Mode", "Server", "Transfer-Encoding", "User-Agent", "Vary",
	"Via",
	"X-Content-Type-Options",
}

// write writes one call: its bodies, each into a file of its own, and a line about it. A forged call has only
// the line.
func (f *files) write(c *call, forged bool) error {
	secrets := slices.Concat(f.secrets, []string{c.token, c.header.Get(ramp.HeaderHMAC)})
	if c.validate != nil {
		secrets = append(secrets, c.validate.UserSig)
	}
	if c.approval != nil {
		secrets = append(secrets, c.approval.ValidatorSig.String())
	}
	e := entry{Call: c.number, Time: c.at.UTC(), Kind: c.kind, Method: c.method, Path: c.path, Bytes: c.size,
		HMAC: c.reading, Unsigned: c.unsigned,
		Took: c.ended.Sub(c.at).String(), Status: c.status, Failure: c.failure, AnswerBytes: c.answerSize}
	if c.kind == elsewhere || holds(c.path, secrets) {
		e.Path = f.mask.text(c.path) // a mistyped address may hold anything
	}
	asked, answered := c.names()
	if forged {
		asked, answered = "", ""
	}
	body, err := f.body(c, asked, c.body, c.size, secrets, &e.Body)
	if err != nil {
		return err
	}
	if _, err := f.body(c, answered, c.answer, c.answerSize, secrets, &e.Answer); err != nil {
		return err
	}
	e.Headers, e.AnswerHeaders = f.headers(c.header, secrets), f.headers(c.answerHeader, secrets)
	if sent := c.header.Get(ramp.HeaderHMAC); sent != "" {
		e.Headers[ramp.HeaderHMAC] = f.hmac(sent, body)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if holds(string(line), secrets) {
		return fmt.Errorf("call %04d is not in calls.jsonl: it holds a secret where the interface has none",
			c.number)
	}
	_, err = f.log.Write(append(line, '\n'))
	return err
}

// names returns the sections and the names of a call's two messages.
func (c *call) names() (asked, answered string) {
	switch c.kind {
	case initialize:
		if c.accepted {
			return "2.2-initialize-request", "2.3-initialize-response"
		}
		return "2.2-initialize-request", "7.1-initialize-failure"
	case assets:
		asked, answered = "", "2.4-assets-response"
	case validate:
		asked, answered = "2.5-validate", "2.6-validate-response"
		if c.validate != nil {
			asked += direction(&c.validate.Intent)
		}
	case result:
		asked, answered = "6-result", "4.3-result-response"
		if c.result != nil {
			if !c.result.Succeeded() {
				asked += "-failed"
			}
			asked += direction(&c.result.Intent)
		}
	default:
		return "", ""
	}
	if !c.accepted {
		answered = "7.2-rejection"
	}
	return asked, answered
}

func direction(i *ramp.Intent) string {
	if d, err := i.Direction(); err == nil {
		return "-" + string(d)
	}
	return ""
}

// body writes a message into a file, and returns its bytes. If it is not written, instead says why.
func (f *files) body(c *call, name string, body []byte, size int64, secrets []string,
	instead *string) ([]byte, error) {
	of, known := shapeOf(name)
	switch {
	case size == 0:
		return nil, nil
	case !known:
		*instead = "not written: it is no message of the interface, or not the service's"
		return nil, nil
	case size > maxBody:
		*instead = "not written: it is too large"
		return nil, nil
	}
	masked, err := f.mask.body(of, body, secrets, func(hex string) string { return f.sign(c, hex) })
	if err != nil {
		*instead = "not written: " + err.Error()
		return nil, nil
	}
	n := int64(len(masked))
	if f.written+n > maxWritten || c.unsigned && f.unsigned+n > maxUnsigned {
		*instead = "not written: the recording is too large"
		return nil, nil
	}
	if f.written += n; c.unsigned {
		f.unsigned += n
	}
	*instead = fmt.Sprintf("%04d-%s.json", c.number, name)
	return masked, os.WriteFile(filepath.Join(f.folder, *instead), masked, 0o600)
}

func shapeOf(name string) (shape, bool) {
	section, _, _ := strings.Cut(name, "-")
	of, known := map[string]shape{"2.2": initializeShape, "2.3": initializeAnswerShape,
		"7.1": initializeAnswerShape,
		"2.4": assetsAnswerShape, "2.5": validateShape, "2.6": validateAnswerShape, "6": resultShape,
		"4.3": resultAnswerShape, "7.2": resultAnswerShape}[section]
	return of, known
}

// sign signs the digest of a call anew, in the form of the signature that it replaces.
func (f *files) sign(c *call, hex string) string {
	old, err := ramp.ParseSignature(hex)
	if c.validate == nil || err != nil {
		return f.mask.signature(hex)
	}
	fresh, err := f.signer.Sign(context.Background(), c.validate.Digest)
	if err != nil {
		return f.mask.signature(hex)
	}
	if old[64] < 27 {
		fresh[64] -= 27
	}
	text := fresh.String()
	if hex != strings.ToLower(hex) {
		text = "0x" + strings.ToUpper(text[2:])
	}
	return text
}

// hmac signs a masked body anew, in the case of the HMAC that it replaces. If there is no body, or
// the HMAC has another form, it masks.
func (f *files) hmac(sent string, body []byte) string {
	fresh := f.key.Sign(body)
	if len(sent) != len(fresh) || body == nil {
		return f.mask.text(sent)
	}
	if sent != strings.ToLower(sent) {
		return strings.ToUpper(fresh)
	}
	return fresh
}

// headers masks the values of headers.
func (f *files) headers(header http.Header, secrets []string) map[string]string {
	masked := map[string]string{}
	for name, values := range header {
		value := strings.Join(values, ", ")
		switch scheme, credential, ok := strings.Cut(value, " "); {
		case name == ramp.HeaderAuthorization && ok:
			value = scheme + " " + f.mask.text(credential)
		case !slices.Contains(shown, name) || holds(value, secrets):
			value = f.mask.text(value)
		}
		masked[name] = value
	}
	return masked
}

// writeReport replaces the report.
func (f *files) writeReport(r *Report) error {
	path := filepath.Join(f.folder, "report.md")
	if err := os.WriteFile(path+".new", []byte(r.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
