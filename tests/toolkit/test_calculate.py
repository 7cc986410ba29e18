import ast
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.calculate import MAX_LENGTH, calculate, evaluate


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("0.1 + 0.2", "0.3"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("-2 ** 2", "-4"),
        ("2 ** -1", "0.5"),
        ("2 ** 3 ** 2", "512"),
        ("10 - 4 - 3", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7.5 % 2", "1.5"),
        ("1.5e3", "1500"),
        (".5 + 5.", "5.5"),
        ("sqrt(16)", "4"),
        ("sqrt(0.25)", "0.5"),
        ("round(2.675, 2)", "2.68"),
        ("round(2.5)", "2"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5)", "-2"),
        ("ceil(-1.5)", "-1"),
        ("trunc(-1.5)", "-1"),
        ("abs(-3)", "3"),
        ("max(1, 2.5, -3)", "2.5"),
        ("sum(0.1, 0.2, 0.3)", "0.6"),
        ("mean(1, 2)", "1.5"),
        ("gcd(12, 18)", "6"),
        ("lcm(4, 6)", "12"),
        ("factorial(20)", "2432902008176640000"),
        ("comb(49, 6)", "13983816"),
        ("sign(-0.5)", "-1"),
        ("2 ** 200", str(2**200)),
        ("1\N{NO-BREAK SPACE}+ 1", "2"),
        ("1 ** 10 ** 900", "1"),
        ("(-1) ** (10 ** 900 + 1)", "-1"),
        ("0 ** 0", "1"),
        ("3 \N{MULTIPLICATION SIGN} 4 \N{DIVISION SIGN} 2 \N{MINUS SIGN} 1", "5"),
    ],
)
def test_what_can_be_exact_is_exact(expression: str, result: str) -> None:
    assert calculate(expression) == {"result": result, "exact": True}


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 / 3", "0.333333333333333"),
        ("sqrt(2) ** 2", "2"),
        ("pi", "3.14159265358979"),
        ("sin(0)", "0"),
        ("log(1000, 10)", "3"),
        ("log(8, 2)", "3"),
        ("log(9, 3)", "2"),
        ("ln(10 ** 900)", "2072.32658369464"),
        ("ln(0.5)", "-0.693147180559945"),
        ("exp(-50)", "1.92874984796392e-22"),
        ("1e20 * pi", "314159265358979000000"),
        ("hypot(3, 4)", "5"),
        ("degrees(pi)", "180"),
        ("round(pi, 2)", "3.14"),
        ("4 ** 0.5", "2"),
        ("cbrt(27)", "3"),
        ("2 / 3 * 10 ** -20", "6.66666666666667e-21"),
    ],
)
def test_what_cannot_be_exact_says_so(expression: str, result: str) -> None:
    answer = calculate(expression)

    assert (answer["result"], answer["exact"]) == (result, False)


def test_a_short_fraction_without_an_end_is_given_as_well() -> None:
    assert calculate("2 / 6")["fraction"] == "1/3"
    assert "fraction" not in calculate("1 / 3 ** 200")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("1 / 0", "divides by zero"),
        ("1 % 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("log(5, 1)", "divides by zero"),
        ("", "ends where a number is expected"),
        ("  ", "ends where a number is expected"),
        ("\x1f", "ends where a number is expected"),
        ("2 +", "ends where a number is expected"),
        ("* 2", "stands where a number is expected"),
        ("2pi", "an operator is missing"),
        ("2(3)", "write * for a product"),
        ("1,000", "write 1000 for 1,000"),
        ("1)", "closes nothing"),
        ("(1", "parenthesis at character 1 is not closed"),
        ("max(1", "parenthesis at character 4 is not closed"),
        ("2 ^ 3", "write ** for a power"),
        ("x + 1", "unknown"),
        ("abs", "write abs(…)"),
        ("max()", "takes 1 to 100 arguments, not 0"),
        ("sin(1, 2)", "takes 1 arguments, not 2"),
        ("sqrt(-1)", "has no value there"),
        ("(-8) ** (1/3)", "no real power"),
        ("log(0)", "has no value there"),
        ("gcd(1.5, 2)", "whole numbers only"),
        ("gcd(pi)", "whole numbers only"),
        ("factorial(-1)", "from 0 to 449"),
        ("factorial(450)", "from 0 to 449"),
        ("round(pi, 5000)", "1000 places"),
        ("9 ** 9 ** 9", "too large"),
        ("10 ** 1001", "more than 1000 digits"),
        ("10 ** 600 * 10 ** 600", "more than 1000 digits"),
        ("2.5 ** 100000", "too large"),
        ("exp(1000)", "too large"),
        ("pi * 1e308 * 10", "not a finite number"),
        ("pi ** 1000", "too large"),
        ("1e1001", "more than 1000 digits"),
        ("1e99999999999999999999", "more than 1000 digits"),
        ("sin(10 ** 400)", "too large"),
        ("lcm(10 ** 900, 3 ** 900, 7 ** 900)", "too large"),
        ("().__class__", "not understood"),
        ("__import__('os')", "not understood"),
        ("open(1)", "unknown"),
        ("exec", "unknown"),
        ("pi.real", "not understood"),
        ("[1]", "not understood"),
        ("1 if 1 else 2", "not expected"),
        ("lambda: 1", "not understood"),
        ("'a' * 9", "not understood"),
        ("1 = 1", "not understood"),
        ("\N{ARABIC-INDIC DIGIT ONE} + 1", "not understood"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_expression(expression: str, said: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        calculate(expression)

    assert refused.value.failure.code is FailureCode.INVALID_ARGUMENT
    assert refused.value.failure.fields == ("expression",)
    assert said in refused.value.failure.message


@pytest.mark.parametrize(
    "expression", ["(" * 60 + "1" + ")" * 60, "-" * 60 + "1", "2**" * 60 + "1"]
)
def test_nesting_is_bounded(expression: str) -> None:
    with pytest.raises(ToolFailed, match="nested more than 50"):
        calculate(expression)


def test_length_is_bounded() -> None:
    assert calculate("1" + "+1" * 499)["result"] == "500"
    with pytest.raises(ToolFailed, match="longer than 1000"):
        calculate("1" + "+1" * MAX_LENGTH)


_numbers = st.one_of(
    st.integers(0, 999).map(str),
    st.decimals(0, 99, places=2).map(str),
)
_expressions = st.recursive(
    _numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join),
        st.tuples(inner, st.integers(-3, 3)).map(lambda parts: f"({parts[0]}) ** {parts[1]}"),
        inner.map(lambda part: f"-{part}"),
        inner.map(lambda part: f"abs({part})"),
        st.tuples(inner, inner).map(lambda parts: f"max({parts[0]}, {parts[1]})"),
    ),
    max_leaves=12,
)


class _AsFractions(ast.NodeTransformer):
    """Makes Python count with fractions, as the tool does."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        text = ast.Call(ast.Name("Fraction", ast.Load()), [ast.Constant(str(node.value))], [])
        return ast.copy_location(text, node)


@given(_expressions)
@settings(deadline=None)
def test_the_result_is_that_of_python_on_fractions(expression: str) -> None:
    tree = ast.fix_missing_locations(_AsFractions().visit(ast.parse(expression, mode="eval")))
    names = {"Fraction": Fraction, "abs": abs, "max": max}
    try:
        expected = eval(compile(tree, "", "eval"), names)  # a grammar of our own, made above
    except ZeroDivisionError:
        with pytest.raises(ToolFailed, match="divides by zero"):
            evaluate(expression)
        return

    assert evaluate(expression) == expected


@given(st.text("0123456789.+-*/%() ,esincoxpqrtlg_^!", max_size=80))
@settings(deadline=1000)
def test_any_text_gives_a_finite_number_or_a_refusal(expression: str) -> None:
    try:
        answer = calculate(expression)
    except ToolFailed as refused:
        answer = {"result": "0", "refused": refused}

    assert len(answer["result"]) < 1100
    assert math.isfinite(float(answer["result"][:300]))
