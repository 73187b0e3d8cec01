import ast
import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.game.accuracy import Scores, equation_holds, token_accuracy, value

NUMBERS = st.integers(0, 30)


@st.composite
def expressions(draw, depth=2):
    """Tokens, and the same expression as Python writes it."""
    tokens, source = [], []
    if draw(st.booleans()):
        tokens, source = ["-"], ["-"]
    for index in range(draw(st.integers(1, 4))):
        if index:
            sign = draw(st.sampled_from("+-*/"))
            tokens.append(sign)
            source.append(sign)
        if depth and draw(st.booleans()):
            inner_tokens, inner_source = draw(expressions(depth=depth - 1))
            tokens += ["(", *inner_tokens, ")"]
            source += ["(", inner_source, ")"]
        else:
            number = draw(NUMBERS)
            tokens.append(str(number))
            source.append(str(number))
    return tokens, " ".join(source)


BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def walk(node):
    """The exact value of what Python's own parser made of an expression."""
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](walk(node.left), walk(node.right))
    if isinstance(node, ast.UnaryOp):
        assert isinstance(node.op, ast.USub)
        return -walk(node.operand)
    return Fraction(node.value)


@given(expressions())
def test_the_value_is_what_exact_python_says(expression):
    tokens, source = expression
    try:
        expected = walk(ast.parse(source, mode="eval").body)
    except ZeroDivisionError:
        expected = None
    assert value(tokens) == expected


@given(st.lists(st.sampled_from(["(", ")", "+", "-", "*", "/", "=", "2", "3", "x", ""]), max_size=9))
def test_any_tokens_have_a_value_or_none(tokens):
    result = value(tokens)
    assert result is None or isinstance(result, Fraction)


@pytest.mark.parametrize("text", ["", "4 / / 2", "+ 3", "( 2", "2 )", "2 3", "4 / 0", "4 / ( 2 - 2 )", "2 + - 3", "-"])
def test_what_is_no_expression_has_no_value(text):
    assert value(text.split()) is None


@pytest.mark.parametrize(
    ("predicted", "target", "holds"),
    [
        ("2 + 3 = 5", "2 + 3 = 5", True),
        ("- 2 + 7 = 5", "2 * 7 = 5", True),
        ("3 + 2 = 5", "2 + 3 = 5", False),
        ("2 + 3 = 6", "2 + 3 = 6", False),
        ("4 / / 2 = 2", "4 / 2 = 2", False),
        ("2 + 3 == 5", "2 + 3 = 5", False),
        ("2 = 3 = 5", "2 + 3 = 5", False),
        ("1 / 3 + 2 / 3 = 1", "1 / 3 + 2 / 3 = 1", True),
        ("= 5", "= 5", False),
        ("5 = - 5", "5 = 5", False),
        ("", "2 + 3 = 5", False),
    ],
)
def test_equations(predicted, target, holds):
    assert equation_holds(predicted.split(), target.split()) is holds


@given(st.lists(st.sampled_from("ab"), max_size=6), st.lists(st.sampled_from("ab"), max_size=6))
def test_token_accuracy_is_a_share_and_full_only_for_the_target_or_its_extension(predicted, target):
    accuracy = token_accuracy(predicted, target)
    assert 0 <= accuracy <= 1
    if target:
        assert (accuracy == 1) == (predicted[: len(target)] == target)


def test_a_longer_prediction_is_not_the_sequence():
    scores = Scores()
    scores.add(["2", "+", "3", "=", "5", "5"], ["2", "+", "3", "=", "5"])
    assert scores.to_json()["sequence_accuracy"] == 0 and scores.to_json()["token_accuracy"] == 100


def test_scores_average_over_pairs():
    scores = Scores()
    for predicted in ("2 + 3 = 5", "2 * 3 = 5", "2 + 3", "- 2 + 7 = 5"):
        scores.add(predicted.split(), ["2", "+", "3", "=", "5"])
    result = scores.to_json()
    assert result["sequence_accuracy"] == 25 and result["equation_accuracy"] == 25
    assert result["token_accuracy"] == pytest.approx(100 * (1 + 0.8 + 0.6 + 0.0) / 4)
    assert "equation_accuracy" not in Scores(arithmetic=False).to_json()
