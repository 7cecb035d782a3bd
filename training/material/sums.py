"""Sums as people say them, with the expression that is right."""

from __future__ import annotations

# {a}, {b}, {c}: numbers as they are said; in the expression, as they are written. p is a percentage.
SAID = {
    "en": (
        ("What is {a} plus {b}?", "{a} + {b}"), ("Add {a} and {b}", "{a} + {b}"), ("{a} minus {b}", "{a} - {b}"),
        ("Subtract {a} from {b}", "{b} - {a}"), ("Take {a} away from {b}", "{b} - {a}"), ("{a} times {b}", "{a} * {b}"),
        ("Multiply {a} by {b}", "{a} * {b}"), ("How much is {a} multiplied by {b}?", "{a} * {b}"), ("Divide {a} by {b}", "{a} / {b}"),
        ("What is {a} divided by {b}?", "{a} / {b}"), ("What's the sum of {a}, {b} and {c}?", "{a} + {b} + {c}"),
        ("What is {p}% of {a}?", "{a} * {p} / 100"), ("{p} percent of {a}", "{a} * {p} / 100"),
        ("Increase {a} by {p}%", "{a} * (1 + {p} / 100)"), ("{a} plus {p} percent", "{a} * (1 + {p} / 100)"),
        ("Reduce {a} by {p} percent", "{a} * (1 - {p} / 100)"), ("{a} minus {p}%", "{a} * (1 - {p} / 100)"),
        ("What percentage of {a} is {b}?", "{b} / {a} * 100"), ("How many percent is {a} of {b}?", "{a} / {b} * 100"),
        ("What is the square root of {a}?", "sqrt({a})"), ("square root of {a} times {b}", "sqrt({a}) * {b}"),
        ("{n} squared", "{n} ** 2"), ("What is {n} cubed?", "{n} ** 3"), ("{n} to the power of {k}", "{n} ** {k}"),
        ("What is half of {a}?", "{a} / 2"), ("A third of {a}", "{a} / 3"), ("Double {a}", "{a} * 2"), ("twice {a} plus {b}", "2 * {a} + {b}"),
        ("average of {a}, {b} and {c}", "({a} + {b} + {c}) / 3"), ("What is the mean of {a} and {b}?", "({a} + {b}) / 2"),
        ("What is the remainder of {n} divided by {k}?", "{n} % {k}"), ("{n} modulo {k}", "{n} % {k}"),
        ("Which is larger, {a} or {b}?", "max({a}, {b})"), ("Round {d} to {k1} digits", "round({d}, {k1})"),
        ("A shirt costs {a} and is {p}% off. What do I pay?", "{a} * (1 - {p} / 100)"), ("{k} tickets at {d} each, how much is that?", "{k} * {d}"),
        ("I had {a} euros and spent {b}. How much is left?", "{a} - {b}"), ("Split {a} among {k} people", "{a} / {k}"),
        ("How many minutes are {d} hours?", "{d} * 60"), ("How many seconds are in {k} days?", "{k} * 24 * 60 * 60"),
        ("How many hours are {k} weeks?", "{k} * 7 * 24"), ("A car goes {a} km in {k} hours. How fast is it?", "{a} / {k}"),
        ("What's the area of a room of {d} by {d2} metres?", "{d} * {d2}"), ("If one costs {d}, what do {k} cost?", "{d} * {k}"),
        ("A bill of {a} with a tip of {p}%, in all?", "{a} * (1 + {p} / 100)"), ("area of a circle with radius {n}", "pi * {n} ** 2"),
        ("natural logarithm of {n}", "log({n})"), ("log base 10 of {a}", "log({a}, 10)"), ("What is {a} + {b} - {c}?", "{a} + {b} - {c}"),
        ("({a} + {b}) times {k}", "({a} + {b}) * {k}"), ("the sum of {a} and {b}, divided by {k}", "({a} + {b}) / {k}"),
        ("the difference between {a} and {b}", "{a} - {b}"), ("product of {n} and {k}", "{n} * {k}"), ("VAT of {p}% on {a}", "{a} * {p} / 100"),
    ),
    "de": (
        ("Was ist {a} plus {b}?", "{a} + {b}"), ("Wie viel ist {a} mal {b}?", "{a} * {b}"), ("{a} minus {b}", "{a} - {b}"), ("{a} geteilt durch {b}", "{a} / {b}"),
        ("Wie viel sind {p} % von {a}?", "{a} * {p} / 100"), ("{p} Prozent von {a}", "{a} * {p} / 100"), ("Wurzel aus {a}", "sqrt({a})"),
        ("{n} hoch {k}", "{n} ** {k}"), ("{n} zum Quadrat", "{n} ** 2"), ("die Hälfte von {a}", "{a} / 2"), ("Teile {a} durch {k}", "{a} / {k}"),
        ("Addiere {a} und {b}", "{a} + {b}"), ("Ziehe {a} von {b} ab", "{b} - {a}"), ("{a} plus {p} Prozent", "{a} * (1 + {p} / 100)"),
        ("{k} Karten zu je {d} Euro, was macht das?", "{k} * {d}"), ("Ein Mantel kostet {a} und ist um {p} % billiger. Was zahle ich?", "{a} * (1 - {p} / 100)"),
        ("Durchschnitt von {a} und {b}", "({a} + {b}) / 2"),
    ),
    "zh": (
        ("{a}加{b}等于多少？", "{a} + {b}"), ("{a}减{b}是多少？", "{a} - {b}"), ("{a}乘以{b}", "{a} * {b}"), ("{a}除以{b}等于几？", "{a} / {b}"),
        ("{a}的{p}%是多少？", "{a} * {p} / 100"), ("{a}的平方根", "sqrt({a})"), ("{n}的平方", "{n} ** 2"), ("{n}的{k}次方", "{n} ** {k}"), ("{a}的一半", "{a} / 2"),
        ("一张票{d}元，{k}张多少钱？", "{d} * {k}"), ("{a}打折，减{p}%，要付多少？", "{a} * (1 - {p} / 100)"), ("{a}和{b}的平均值", "({a} + {b}) / 2"),
        ("计算{a}加{b}再乘以{k}", "({a} + {b}) * {k}"),
    ),
}  # fmt: skip
TYPED = {
    "en": (
        "{}",
        "{} = ?",
        "What is {}?",
        "Calculate {}",
        "Work out {} for me",
        "what's {}",
        "compute {}",
        "How much is {}?",
        "{}=",
        "Evaluate {}",
    ),
    "de": ("{}", "Was ist {}?", "Berechne {}", "Wie viel ist {}?", "{} = ?"),
    "zh": ("{}", "{}等于多少？", "计算{}", "算一下{}", "{}=?"),
}
