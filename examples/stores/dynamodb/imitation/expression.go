package imitation

import (
	"math/big"
	"strings"
)

// value is an attribute: a text or a whole number.
type value struct {
	S *string `json:"S,omitempty"`
	N *string `json:"N,omitempty"`
}

type item map[string]value

// size is about how DynamoDB counts the bytes of an item.
func (i item) size() (n int) {
	for name, v := range i {
		n += len(name)
		if v.S != nil {
			n += len(*v.S)
		}
		if v.N != nil {
			n += len(*v.N)/2 + 2
		}
	}
	return n
}

// check refuses what DynamoDB, or the imitation, cannot store.
func (i item) check() error {
	for name, v := range i {
		if v.S == nil && v.N == nil {
			return invalid("the imitation knows texts and whole numbers, which " + name + " is not")
		}
		if v.N != nil {
			if _, err := number(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func number(v value) (*big.Int, error) {
	if v.N == nil {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}
	n, ok := new(big.Int).SetString(*v.N, 10)
	if !ok || len(strings.TrimLeft(n.String(), "-")) > 38 {
		return nil, invalid("not a whole number of at most 38 digits: " + *v.N)
	}
	return n, nil
}

// expression evaluates the expressions of a write.
type expression struct {
	item   item
	names  map[string]string
	values item
	used   map[string]bool
	tokens []string
}

func (e *expression) read(text string) {
	for _, sign := range []string{"(", ")", ",", "<=", ">="} {
		text = strings.ReplaceAll(text, sign, " "+sign+" ")
	}
	e.tokens = strings.Fields(text)
}

func (e *expression) next() string {
	if len(e.tokens) == 0 {
		return ""
	}
	token := e.tokens[0]
	e.tokens = e.tokens[1:]
	return token
}

func (e *expression) is(token string) bool {
	if len(e.tokens) > 0 && e.tokens[0] == token {
		e.next()
		return true
	}
	return false
}

func (e *expression) name() (string, error) {
	token := e.next()
	if name, ok := e.names[token]; ok {
		return name, nil
	}
	if token == "" || strings.ContainsAny(token, "#:(),") {
		return "", invalid("Invalid expression: not the name of an attribute: " + token)
	}
	return token, nil
}

// operand returns a value, and whether there is one.
func (e *expression) operand() (value, bool, error) {
	if len(e.tokens) > 0 && strings.HasPrefix(e.tokens[0], ":") {
		token := e.next()
		v, ok := e.values[token]
		if !ok {
			return v, false, invalid("An expression attribute value is not defined: " + token)
		}
		e.used[token] = true
		return v, true, nil
	}
	name, err := e.name()
	v, ok := e.item[name]
	return v, ok, err
}

// condition evaluates a condition. An empty one holds.
func (e *expression) condition(text string) (bool, error) {
	if text == "" {
		return true, nil
	}
	e.read(text)
	holds, err := e.any()
	if err == nil && len(e.tokens) > 0 {
		err = invalid("Invalid expression: Syntax error near " + e.next())
	}
	return holds, err
}

func (e *expression) any() (bool, error) {
	holds, err := e.all()
	for err == nil && e.is("OR") {
		var other bool
		other, err = e.all()
		holds = holds || other
	}
	return holds, err
}

func (e *expression) all() (bool, error) {
	holds, err := e.one()
	for err == nil && e.is("AND") {
		var other bool
		other, err = e.one()
		holds = holds && other
	}
	return holds, err
}

func (e *expression) one() (bool, error) {
	if e.is("(") {
		holds, err := e.any()
		if err == nil && !e.is(")") {
			err = invalid("Invalid expression: Syntax error near (")
		}
		return holds, err
	}
	for _, exists := range []bool{true, false} {
		function := map[bool]string{true: "attribute_exists", false: "attribute_not_exists"}[exists]
		if e.is(function) {
			open := e.is("(")
			name, err := e.name()
			if err == nil && (!open || !e.is(")")) {
				err = invalid("Invalid expression: Syntax error near " + function)
			}
			_, has := e.item[name]
			return has == exists, err
		}
	}
	left, has, err := e.operand()
	if err != nil {
		return false, err
	}
	operator := e.next()
	right, hasRight, err := e.operand()
	if err != nil {
		return false, err
	}
	order, comparable := compare(left, right)
	both := has && hasRight && comparable
	switch operator {
	case "=":
		return both && order == 0, nil
	case "<=":
		return both && order <= 0, nil
	case ">=":
		return both && order >= 0, nil
	case "BETWEEN":
		if !e.is("AND") {
			return false, invalid("Invalid expression: BETWEEN without AND")
		}
		high, hasHigh, err := e.operand()
		if err != nil {
			return false, err
		}
		if bounds, _ := compare(right, high); bounds > 0 {
			return false, invalid("BETWEEN requires that the upper bound is not below the lower bound")
		}
		upper, comparable := compare(left, high)
		return both && hasHigh && comparable && order >= 0 && upper <= 0, nil
	}
	return false, invalid("the imitation does not know the operator " + operator)
}

func compare(a, b value) (order int, comparable bool) {
	switch {
	case a.S != nil && b.S != nil:
		return strings.Compare(*a.S, *b.S), true
	case a.N != nil && b.N != nil:
		x, errX := number(a)
		y, errY := number(b)
		if errX != nil || errY != nil {
			return 0, false
		}
		return x.Cmp(y), true
	}
	return 0, false
}

// update changes an item: "SET a = a - :n, b = b - :m", or "ADD a :n, b :m".
func (e *expression) update(text string, after item) error {
	e.read(text)
	kind := e.next()
	for {
		err := e.change(kind, after)
		switch {
		case err != nil:
			return err
		case len(e.tokens) == 0:
			return nil
		case !e.is(","):
			return invalid("Invalid UpdateExpression: Syntax error near " + e.next())
		}
	}
}

func (e *expression) change(kind string, after item) error {
	name, err := e.name()
	if err != nil {
		return err
	}
	old, has := e.item[name]
	switch kind {
	case "SET":
		equals := e.is("=")
		if again, err := e.name(); err != nil || again != name || !equals || !e.is("-") {
			return invalid("the imitation knows only a SET of an attribute to itself less a value: " + name)
		}
		if !has {
			return invalid("The provided expression refers to an attribute that does not exist in the item")
		}
	case "ADD":
	default:
		return invalid("the imitation does not know the update " + kind)
	}
	by, ok, err := e.operand()
	if err != nil || !ok {
		return invalid("Invalid UpdateExpression: no value for " + name)
	}
	sum := new(big.Int)
	if has {
		if sum, err = number(old); err != nil {
			return err
		}
	}
	n, err := number(by)
	if err != nil {
		return err
	}
	if kind == "SET" {
		n.Neg(n)
	}
	result := sum.Add(sum, n).String()
	after[name] = value{N: &result}
	return nil
}
