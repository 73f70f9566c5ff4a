package explain

import (
	"fmt"
	"regexp"
	"strings"

	exprv1 "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// evaluate returns the value of a CEL expression over strings. It supports the
// operators and functions that policies use. names are the attributes, such as
// request.host. An expression without a value is an error: Envoy's policy then
// does not match.
func evaluate(e *exprv1.Expr, names map[string]string) (any, error) {
	switch {
	case e.GetConstExpr() != nil:
		switch c := e.GetConstExpr().GetConstantKind().(type) {
		case *exprv1.Constant_StringValue:
			return c.StringValue, nil
		case *exprv1.Constant_Int64Value:
			return c.Int64Value, nil
		}
	case e.GetSelectExpr() != nil:
		name := e.GetSelectExpr().GetOperand().GetIdentExpr().GetName() + "." + e.GetSelectExpr().GetField()
		if value, known := names[name]; known {
			return value, nil
		}
	case e.GetCallExpr() != nil:
		return call(e.GetCallExpr(), names)
	}
	return nil, fmt.Errorf("expression %v is not known", e)
}

func call(c *exprv1.Expr_Call, names map[string]string) (any, error) {
	args := c.GetArgs()
	if c.GetTarget() != nil {
		args = append([]*exprv1.Expr{c.GetTarget()}, args...)
	}
	values := make([]any, len(args))
	for i, arg := range args {
		var err error
		if values[i], err = evaluate(arg, names); err != nil {
			return nil, err
		}
	}
	switch c.GetFunction() {
	case "!_":
		return with1(c, values, func(a bool) (any, error) { return !a, nil })
	case "lowerAscii":
		return with1(c, values, func(s string) (any, error) { return seam.LowerASCII(s), nil })
	case "_&&_":
		return with2(c, values, func(a, b bool) (any, error) { return a && b, nil })
	case "_||_":
		return with2(c, values, func(a, b bool) (any, error) { return a || b, nil })
	case "_==_":
		return with2(c, values, func(a, b string) (any, error) { return a == b, nil })
	case "split":
		return with2(c, values, func(s, by string) (any, error) { return strings.Split(s, by), nil })
	case "matches":
		return with2(c, values, func(s, expr string) (any, error) {
			re, err := regexp.Compile(seam.Latin1(expr))
			if err != nil {
				return nil, fmt.Errorf("reading the regular expression %q: %w", expr, err)
			}
			return re.MatchString(seam.Latin1(s)), nil
		})
	case "_[_]":
		return with2(c, values, func(list []string, i int64) (any, error) {
			if i < 0 || i >= int64(len(list)) {
				return nil, fmt.Errorf("index %d is out of range", i)
			}
			return list[i], nil
		})
	}
	return nil, fmt.Errorf("function %q of an expression is not known", c.GetFunction())
}

func with1[A any](c *exprv1.Expr_Call, values []any, f func(A) (any, error)) (any, error) {
	if len(values) == 1 {
		if a, ok := values[0].(A); ok {
			return f(a)
		}
	}
	return nil, fmt.Errorf("arguments %v of function %q of an expression are not known", values, c.GetFunction())
}

func with2[A, B any](c *exprv1.Expr_Call, values []any, f func(A, B) (any, error)) (any, error) {
	if len(values) == 2 {
		a, okA := values[0].(A)
		b, okB := values[1].(B)
		if okA && okB {
			return f(a, b)
		}
	}
	return nil, fmt.Errorf("arguments %v of function %q of an expression are not known", values, c.GetFunction())
}
