package rampsql

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// literally writes the arguments into the statement, because with arguments the
// driver would prepare the statement first, in another round trip.
func literally(statement string, args ...any) string {
	for n := len(args); n > 0; n-- { // $10 before $1; no literal has a $
		statement = strings.ReplaceAll(statement, "$"+strconv.Itoa(n), literal(args[n-1]))
	}
	return statement
}

// literal writes a value for MySQL. Text with anything but letters, digits and
// dashes is written in hex, which has the same meaning under every sql_mode and
// character set.
func literal(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%d", value)
	}
	const safe = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if strings.Trim(text, safe) != "" {
		return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}
